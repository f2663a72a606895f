// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the tests run this binary as the command that it tests.
func TestMain(m *testing.M) {
	if os.Getenv("BE_BUNDLE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// page is what a registry that isn't well may send in place of an error.
func page(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "<html>\n<title>\nBusy\n</title>\n", http.StatusForbidden)
}

// serving starts a registry that handles all requests so, and returns its address.
func serving(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestBadInputEndsWithOneLineAndLeavesTheOldBundle(t *testing.T) {
	for name, test := range map[string]struct {
		args       []string
		file       string // of the configuration, to be changed from
		from, to   string
		want       string
		wantStatus int
	}{
		"the base has no icon": {
			file: "manifests/bases/memcached-operator.clusterserviceversion.yaml", from: "mediatype: image/svg+xml", to: `mediatype: ""`,
			want: "spec.icon", wantStatus: 1,
		},
		"an image is not in the images file": {
			file: "images/images.env", from: "memcached=", to: "# memcached=",
			want: `has no image "memcached"`, wantStatus: 1,
		},
		"the CRD refuses a sample": {
			file: "samples/cache_v1_memcached.yaml", from: "size: 3", to: "size: three",
			want: "spec.size", wantStatus: 1,
		},
		"VERSION isn't semantic":    {args: []string{"--version=one"}, want: `VERSION is "one"`, wantStatus: 1},
		"PREVIOUS_VERSION is newer": {args: []string{"--previous-version=0.3.0"}, want: `PREVIOUS_VERSION is "0.3.0"`, wantStatus: 1},
		"an image has no name":      {args: []string{"--image=quay.io/a/b:v1"}, want: "give name=reference", wantStatus: 1},
		"USE_IMAGE_DIGESTS isn't true or false": {
			args: []string{"--use-image-digests=yes"}, want: `"yes" for -use-image-digests: USE_IMAGE_DIGESTS is true or false`, wantStatus: 1,
		},
		"a registry answers with a page": {
			args: []string{"--use-image-digests", "--image=manager=" + serving(t, page) + "/a:v1"}, want: "<title> Busy </title>", wantStatus: 1,
		},
		"nothing is wrong":          {wantStatus: 0},
		"the folder isn't there":    {args: []string{"--root=nowhere"}, want: "nowhere", wantStatus: 1},
		"a registry doesn't answer": {args: []string{"--use-image-digests", "--image=manager=127.0.0.1:1/a:v1"}, want: "127.0.0.1:1/a:v1 has no digest", wantStatus: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			config := filepath.Join(root, "config")
			if err := os.CopyFS(config, os.DirFS("../../config")); err != nil {
				t.Fatal(err)
			}
			if test.file != "" {
				replace(t, filepath.Join(config, test.file), test.from, test.to)
			}
			old := filepath.Join(root, "bundle", "old")
			if err := errors.Join(os.Mkdir(filepath.Dir(old), 0o750), os.WriteFile(old, []byte("old"), 0o600)); err != nil {
				t.Fatal(err)
			}

			command := bundleIn(root, test.args...)
			var said bytes.Buffer
			command.Stderr = &said
			err := command.Run()
			if status := command.ProcessState.ExitCode(); status != test.wantStatus {
				t.Errorf("ended with %d: %v", status, err)
			}
			if !strings.Contains(said.String(), test.want) {
				t.Errorf("said %q, want %q", said.String(), test.want)
			}
			if lines := strings.Count(said.String(), "\n"); test.wantStatus != 0 && (lines != 1 || !strings.HasPrefix(said.String(), "bundle: ")) {
				t.Errorf("said more than one line: %q", said.String())
			}
			_, gone := os.Stat(old)
			if replaced := gone != nil; replaced != (test.wantStatus == 0) {
				t.Errorf("the old bundle was replaced: %v", replaced)
			}
		})
	}
}

func bundleIn(root string, args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], append([]string{"--version=0.2.0", "--channels=stable-v1", "--default-channel=stable-v1"}, args...)...)
	command.Dir = root
	command.Env = append(os.Environ(), "BE_BUNDLE=1")
	return command
}

// As by a job of CI that is cancelled, and not with the keyboard.
func TestTerminatedItSaysWhatItWasAt(t *testing.T) {
	asked := make(chan struct{}, 1)
	registry := serving(t, func(_ http.ResponseWriter, request *http.Request) {
		asked <- struct{}{}
		<-request.Context().Done()
	})
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "config"), os.DirFS("../../config")); err != nil {
		t.Fatal(err)
	}
	command := bundleIn(root, "--use-image-digests", "--image=manager="+registry+"/a:v1")
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := command.Wait()
	if command.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), registry) {
		t.Errorf("ended with %v: %q", err, said.String())
	}
}

func replace(t *testing.T, file, before, after string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), before) {
		t.Fatalf("%s has no %q", file, before)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), before, after, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
