// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestMain lets the tests run this binary as the command that it tests.
func TestMain(m *testing.M) {
	if os.Getenv("BE_IMAGE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// root of the repository.
const root = "../../.."

func TestTheBundleReachesARegistryWithItsFilesAndLabels(t *testing.T) {
	tag := serve(t) + "/example-inc/memcached-operator-bundle:v0.1.0"
	images := store(t.TempDir())
	must(t, build(t.Context(), images, []string{"--file", root + "/bundle.Dockerfile", "--tag", tag, root}))
	must(t, push(t.Context(), images, []string{tag}))

	image, err := crane.Pull(tag)
	must(t, err)
	manifest, err := image.MediaType()
	must(t, err)
	if manifest != types.OCIManifestSchema1 {
		t.Errorf("pushed a %s and not the image of one architecture", manifest)
	}
	file, err := image.ConfigFile()
	must(t, err)
	if file.OS != "linux" || file.Architecture != runtime.GOARCH {
		t.Errorf("built for %s/%s", file.OS, file.Architecture)
	}
	if len(file.Config.Labels) != 11 || file.Config.Labels["operators.operatorframework.io.bundle.manifests.v1"] != "manifests/" {
		t.Errorf("labels: %v", file.Config.Labels)
	}

	want := map[string]string{}
	bundle := os.DirFS(root + "/bundle")
	must(t, fs.WalkDir(bundle, ".", func(name string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		text, err := fs.ReadFile(bundle, name)
		want[name] = string(text)
		return err
	}))
	got := map[string]string{}
	for name, found := range contents(t, image) {
		if found.header.Typeflag == tar.TypeReg {
			got[name] = found.text
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-bundle/ +image):\n%s", diff)
	}
}

func TestTheSameInputHasTheSameDigest(t *testing.T) {
	files := map[string]string{"Dockerfile": "FROM scratch\nLABEL b=1 a=2\nCOPY f /d/\nCOPY f g /", "f": "1", "g": "2"}
	first, second, third := folderOf(t, files), folderOf(t, files), folderOf(t, files)
	must(t, os.Chtimes(filepath.Join(second, "f"), time.Time{}, time.Unix(1, 0)))
	must(t, os.WriteFile(filepath.Join(third, "f"), []byte("other"), 0o600))

	digest := func(folder string) string {
		images := store(t.TempDir())
		must(t, build(t.Context(), images, []string{"--tag", "example.com/a:v1", folder}))
		return digestOf(t, images, "example.com/a:v1")
	}
	if one, other := digest(first), digest(second); one != other {
		t.Errorf("%s, and later %s", one, other)
	}
	if one, other := digest(first), digest(third); one == other {
		t.Errorf("another file, but still %s", one)
	}
}

func TestAnImageThatIsReplacedLeavesNothingBehind(t *testing.T) {
	const tag = "example.com/a:v1"
	images := store(t.TempDir())
	built := func(label string) (digest, blob string) {
		folder := folderOf(t, map[string]string{"Dockerfile": "FROM scratch\nLABEL a=" + label})
		must(t, build(t.Context(), images, []string{"--tag", tag, folder}))
		digest = digestOf(t, images, tag)
		return digest, filepath.Join(string(images), tag, "blobs", strings.Replace(digest, ":", "/", 1))
	}
	old, oldBlob := built("old")
	replaced, blob := built("new")
	if replaced == old {
		t.Error("the old image is still there")
	}
	if _, err := os.Stat(blob); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(oldBlob); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the manifest of the old image is still there: %v", err)
	}
}

func TestBuildsAtTheSameTimeKeepWholeImages(t *testing.T) {
	base := serve(t) + "/base:v1"
	pushBase(t, base)
	images := store(t.TempDir())
	var builds sync.WaitGroup
	for i := range 20 {
		folder := folderOf(t, map[string]string{"Dockerfile": fmt.Sprintf("FROM %s\nLABEL build=%d\nCOPY . /", base, i)})
		builds.Go(func() {
			if err := build(t.Context(), images, []string{"--tag=example.com/a:v1", folder}); err != nil {
				t.Error(err)
			}
		})
	}
	builds.Wait()
	must(t, validate.Image(loadImage(t, images, "example.com/a:v1")))
	left, err := filepath.Glob(filepath.Join(string(images), ".*"))
	if must(t, err); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWhatAnInstructionDoes(t *testing.T) {
	base := serve(t) + "/base:v1"
	pushBase(t, base)
	for name, test := range map[string]struct {
		dockerfile string
		args       []string
		ignored    string
		// wantFiles are mode and content by path, with a slash behind a folder's; those of the base only where they matter.
		wantFiles  map[string]string
		wantConfig v1.Config
	}{
		"the content of a folder is copied": {
			dockerfile: "FROM scratch\nCOPY d /to/",
			wantFiles:  map[string]string{"to/": "0755", "to/run": "0755 run", "to/sub/": "0750", "to/sub/a": "0640 a", "to/link": "0777 -> run"},
		},
		"a folder needs no slash": {
			dockerfile: "FROM scratch\nCOPY d/sub to",
			wantFiles:  map[string]string{"to/": "0755", "to/a": "0640 a"},
		},
		"a file keeps its name before a slash": {
			dockerfile: "FROM scratch\nCOPY a /to/",
			wantFiles:  map[string]string{"to/": "0755", "to/a": "0600 1"},
		},
		"a file gets the name without a slash": {
			dockerfile: "FROM scratch\nCOPY a /to/b",
			wantFiles:  map[string]string{"to/": "0755", "to/b": "0600 1"},
		},
		"several files go into a folder, where the last of a name stays": {
			dockerfile: "FROM scratch\nCOPY a b d/sub /to/",
			wantFiles:  map[string]string{"to/": "0755", "to/a": "0640 a", "to/b": "0600 2"},
		},
		"a pattern stands for several files": {
			dockerfile: "FROM scratch\nCOPY [ab] ./",
			wantFiles:  map[string]string{"a": "0600 1", "b": "0600 2"},
		},
		"a link that is named is followed": {
			dockerfile: "FROM scratch\nCOPY d/link /",
			wantFiles:  map[string]string{"link": "0755 run"},
		},
		"the whole folder": {
			dockerfile: "FROM scratch\nCOPY . /to/",
			ignored:    "d\nDockerfile\nb\nover",
			wantFiles:  map[string]string{"to/": "0755", "to/.dockerignore": "0600 d\nDockerfile\nb\nover", "to/a": "0600 1"},
		},
		"what .dockerignore names is left out, but for exceptions": {
			dockerfile: "FROM scratch\nCOPY d /",
			ignored:    "*\n!d/sub",
			wantFiles:  map[string]string{"sub/": "0750", "sub/a": "0640 a"},
		},
		"folders of the base stay as they are, and links in it lead on": {
			dockerfile: "FROM " + base + "\nCOPY a /tmp/new/\nCOPY b /tmp\nCOPY a /bin/a\nCOPY over /",
			wantFiles: map[string]string{
				"tmp/": "1777", "tmp/new/": "0755", "tmp/new/a": "0600 1", "tmp/b": "0600 2", "tmp/c": "0600 c",
				"usr/": "0755", "usr/bin/": "0755", "bin": "0777 -> usr/bin", "bin/a": "0600 1", "bin/d": "0600 d",
			},
			wantConfig: baseConfig(),
		},
		"variables": {
			dockerfile: "ARG IMAGE=scratch\nARG BEFORE=b\nFROM $IMAGE\nARG BEFORE\nARG GIVEN=default\nARG OTHER=$GIVEN\n" +
				"LABEL l=\"$BEFORE $GIVEN ${OTHER:-none} $NONE\" m='$GIVEN'\nUSER $GIVEN",
			args:       []string{"--build-arg=GIVEN=given", "--build-arg", "OTHER="},
			wantConfig: v1.Config{Labels: map[string]string{"l": "b given none ", "m": "$GIVEN"}, User: "given"},
		},
		"a new ENTRYPOINT takes the CMD of the base away": {
			dockerfile: "FROM " + base + "\nENTRYPOINT run it",
			wantFiles:  map[string]string{"usr/": "0755", "usr/bin/": "0755", "bin": "0777 -> usr/bin", "tmp/": "1777"},
			wantConfig: func() v1.Config {
				config := baseConfig()
				config.Entrypoint, config.Cmd = []string{"/bin/sh", "-c", "run it"}, nil
				return config
			}(),
		},
		"a new CMD stays": {
			dockerfile: "FROM scratch\nCMD [\"c\"]\nENTRYPOINT [\"e\"]",
			wantConfig: v1.Config{Cmd: []string{"c"}, Entrypoint: []string{"e"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"Dockerfile": test.dockerfile, "a": "1", "b": "2"}
			if test.ignored != "" {
				files[".dockerignore"] = test.ignored
			}
			folder := folderOf(t, files)
			must(t, errors.Join(
				os.MkdirAll(filepath.Join(folder, "d/sub"), 0o750), os.Chmod(filepath.Join(folder, "d/sub"), 0o750),
				os.WriteFile(filepath.Join(folder, "d/sub/a"), []byte("a"), 0o600), os.Chmod(filepath.Join(folder, "d/sub/a"), 0o640),
				os.WriteFile(filepath.Join(folder, "d/run"), []byte("run"), 0o600), os.Chmod(filepath.Join(folder, "d/run"), 0o755),
				os.MkdirAll(filepath.Join(folder, "over/tmp"), 0o700), os.WriteFile(filepath.Join(folder, "over/tmp/c"), []byte("c"), 0o600),
				os.Mkdir(filepath.Join(folder, "over/bin"), 0o700), os.WriteFile(filepath.Join(folder, "over/bin/d"), []byte("d"), 0o600),
				os.Symlink("run", filepath.Join(folder, "d/link")),
			))
			images := store(t.TempDir())
			must(t, build(t.Context(), images, append(test.args, "--tag=example.com/a:v1", folder)))

			image := loadImage(t, images, "example.com/a:v1")
			got := map[string]string{}
			for name, found := range contents(t, image) {
				if found.header.Uid != 0 || found.header.Gid != 0 {
					t.Errorf("%s belongs to %d:%d", name, found.header.Uid, found.header.Gid)
				}
				text := fmt.Sprintf("%04o", found.header.Mode)
				switch found.header.Typeflag {
				case tar.TypeReg:
					text += " " + found.text
				case tar.TypeSymlink:
					text += " -> " + found.header.Linkname
				}
				got[name] = text
			}
			if test.wantFiles == nil {
				test.wantFiles = map[string]string{}
			}
			if diff := cmp.Diff(test.wantFiles, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			wantKind := types.OCILayer
			if strings.Contains(test.dockerfile, base) {
				wantKind = types.DockerLayer
			}
			layers, err := image.Layers()
			must(t, err)
			for _, layer := range layers {
				if kind, kindErr := layer.MediaType(); kind != wantKind {
					t.Errorf("a layer is a %s and not, like the image, a %s: %v", kind, wantKind, kindErr)
				}
			}
			file, err := image.ConfigFile()
			must(t, err)
			if !strings.Contains(test.dockerfile, base) {
				test.wantConfig.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, test.wantConfig.Env...)
			}
			if diff := cmp.Diff(test.wantConfig, file.Config); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatItCannotDoIsRefusedInOneLineThatSaysWhere(t *testing.T) {
	for name, test := range map[string]struct {
		dockerfile string
		args       []string
		want       []string
	}{
		"RUN":                   {dockerfile: "FROM scratch\n\nRUN a \\\n  b", want: []string{"Dockerfile:3: RUN a", "CONTAINER_TOOL", "podman"}},
		"RUN is found first":    {dockerfile: "FROM 127.0.0.1:1/none:v1\nRUN a\nFROM scratch", want: []string{"Dockerfile:2: RUN a"}},
		"ENV":                   {dockerfile: "FROM scratch\nENV a=b", want: []string{"Dockerfile:2: ENV a=b", "CONTAINER_TOOL"}},
		"ADD":                   {dockerfile: "FROM scratch\nADD a /", want: []string{"Dockerfile:2: ADD a /", "CONTAINER_TOOL"}},
		"COPY --from":           {dockerfile: "FROM scratch\nCOPY --from=x a /", want: []string{"Dockerfile:2: COPY --from=x a /"}},
		"COPY --chmod":          {dockerfile: "FROM scratch\nCOPY --chmod=700 a /", want: []string{"Dockerfile:2: COPY --chmod=700"}},
		"COPY of what is there": {dockerfile: "FROM scratch\nCOPY <<E /b\nx\nE\n", want: []string{"Dockerfile:2: COPY <<E"}},
		"a second stage":        {dockerfile: "FROM scratch AS a\nFROM scratch", want: []string{"Dockerfile:2: FROM scratch"}},
		"another platform":      {dockerfile: "FROM --platform=linux/s390x scratch", want: []string{"Dockerfile:1: FROM --platform"}},
		"no instruction":        {dockerfile: "FROM scratch\nTURN left", want: []string{"Dockerfile", "line 2", "TURN"}},
		"no FROM":               {dockerfile: "ARG a", want: []string{"there is no FROM"}},
		"FROM nothing":          {dockerfile: "ARG IMAGE\nFROM $IMAGE", want: []string{"Dockerfile:2: FROM", "build argument"}},
		"a base that isn't there": {
			dockerfile: "FROM 127.0.0.1:1/none:v1", want: []string{"Dockerfile:1: pulling 127.0.0.1:1/none:v1"},
		},
		"a missing file":       {dockerfile: "FROM scratch\nCOPY a none /", want: []string{"Dockerfile:2: COPY none: no such file", ".dockerignore"}},
		"an ignored file":      {dockerfile: "FROM scratch\nCOPY ignored /", want: []string{"Dockerfile:2: COPY ignored: no such file"}},
		"a file outside":       {dockerfile: "FROM scratch\nCOPY ../../../../../etc/hostname /", want: []string{"Dockerfile:2: COPY ../", "no such file"}},
		"a link outside":       {dockerfile: "FROM scratch\nCOPY outside /", want: []string{"Dockerfile:2: COPY outside: no such file"}},
		"files into a file":    {dockerfile: "FROM scratch\nCOPY a b /to", want: []string{"Dockerfile:2: COPY of 2 files to /to", "slash"}},
		"into a file":          {dockerfile: "FROM scratch\nCOPY a /x\nCOPY b /x/y/", want: []string{"Dockerfile:3: /x is a file", "rename"}},
		"a folder over a file": {dockerfile: "FROM scratch\nCOPY a /x/d\nCOPY . /x", want: []string{"Dockerfile:3: /x/d is a file", "rename"}},
		"a file over a folder": {dockerfile: "FROM scratch\nCOPY a /x/b/\nCOPY b /x/", want: []string{"Dockerfile:3: COPY of the file b to /x/b", "rename"}},
		"no tag":               {dockerfile: "FROM scratch", args: []string{"--tag="}, want: []string{`tag ""`, "give one such as"}},
		"a tag without host":   {dockerfile: "FROM scratch", args: []string{"--tag=a:v1"}, want: []string{`tag "a:v1"`}},
		"a digest":             {dockerfile: "FROM scratch", args: []string{"--tag=example.com/a@sha256:1"}, want: []string{`tag "example.com/a@sha256:1"`}},
		"a bad argument":       {dockerfile: "FROM scratch", args: []string{"--build-arg=a"}, want: []string{"build-arg", "give NAME=VALUE"}},
		"another flag":         {dockerfile: "FROM scratch", args: []string{"--squash"}, want: []string{"-squash"}},
		"two folders":          {dockerfile: "FROM scratch", args: []string{"other"}, want: []string{"build takes one folder", `"other"`}},
		"no Dockerfile":        {dockerfile: "FROM scratch", args: []string{"--file=nowhere"}, want: []string{"nowhere: no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := folderOf(t, map[string]string{
				"Dockerfile": test.dockerfile, ".dockerignore": "ignored", "a": "1", "b": "2", "ignored": "3",
			})
			must(t, errors.Join(os.Symlink("/etc/hostname", filepath.Join(folder, "outside")), os.Mkdir(filepath.Join(folder, "d"), 0o700)))
			images := filepath.Join(t.TempDir(), "images")
			err := build(t.Context(), store(images), append(append([]string{"--tag=example.com/a:v1"}, test.args...), folder))
			wantError(t, err, test.want...)
			if _, err := os.Stat(images); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an image was kept: %v", err)
			}
		})
	}
}

// The manager's image takes the Go compiler.
func TestTheManagersImageNeedsAnotherTool(t *testing.T) {
	err := build(t.Context(), store(t.TempDir()), []string{"--build-arg", "VERSION=0.1.0", "--tag", "example.com/a:v1", root})
	wantError(t, err, "Dockerfile:", "this tool only copies files", "CONTAINER_TOOL")
}

func TestPushAndOtherCommands(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an image that wasn't built": {[]string{"push", "example.com/never-built:v1"}, "example.com/never-built:v1 isn't in "},
		"no tag":                     {[]string{"push"}, "push takes one tag"},
		"a bad tag":                  {[]string{"push", "a b"}, `tag "a b"`},
		"docker's other commands":    {[]string{"buildx", "build"}, `command "buildx"`},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, command(t.Context(), test.args), test.want)
		})
	}
	t.Run("a registry that isn't there", func(t *testing.T) {
		images := store(t.TempDir())
		must(t, build(t.Context(), images, []string{"--tag=127.0.0.1:1/a:v1", folderOf(t, map[string]string{"Dockerfile": "FROM scratch"})}))
		wantError(t, push(t.Context(), images, []string{"127.0.0.1:1/a:v1"}), "pushing 127.0.0.1:1/a:v1")
	})
	t.Run("an image whose building was cut off", func(t *testing.T) {
		images := store(t.TempDir())
		tag, err := parseTag("example.com/a:v1")
		must(t, err)
		must(t, images.save(tag, empty.Image))
		must(t, os.WriteFile(filepath.Join(images.path(tag), "index.json"), []byte(`{"schemaVersion": 2, "manifests": []}`), 0o600))
		wantError(t, push(t.Context(), images, []string{tag.Name()}), "isn't complete", "build it again")
	})
}

func TestAPageThatARegistrySendsIsToldInOneLine(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>\n<title>\nBusy\n</title>\n", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	base := strings.TrimPrefix(server.URL, "http://") + "/base:v1"
	folder := folderOf(t, map[string]string{"Dockerfile": "FROM " + base})
	build := exec.CommandContext(t.Context(), os.Args[0], "build", "--tag=example.com/a:v1", folder)
	build.Env = append(os.Environ(), "BE_IMAGE=1")
	output, err := build.CombinedOutput()
	said := string(output)
	if err == nil || !strings.Contains(said, "pulling "+base) || !strings.Contains(said, "<title> Busy") || strings.Count(said, "\n") != 1 {
		t.Errorf("%v: %q", err, said)
	}
}

// serve starts a registry and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func baseConfig() v1.Config {
	return v1.Config{Cmd: []string{"base"}, Env: []string{"PATH=/bin"}, Labels: map[string]string{"base": "1"}}
}

// pushBase makes an image of Docker's format that has a folder of an unusual mode, and a link to a folder.
func pushBase(t *testing.T, tag string) {
	t.Helper()
	archive, err := layer{
		"/tmp":     {header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o1777}},
		"/usr":     {header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"/usr/bin": {header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"/bin":     {header: tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "usr/bin"}},
	}.archive()
	must(t, err)
	content, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(archive))), nil })
	must(t, err)
	image, err := mutate.AppendLayers(empty.Image, content)
	must(t, err)
	image, err = mutate.Config(image, baseConfig())
	must(t, err)
	must(t, crane.Push(image, tag))
}

type found struct {
	header *tar.Header
	text   string
}

// contents are the files of an image as a container sees them, with a slash behind the names of folders.
func contents(t *testing.T, image v1.Image) map[string]found {
	t.Helper()
	files := map[string]found{}
	for archive := tar.NewReader(mutate.Extract(image)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		if header.Typeflag == tar.TypeDir {
			header.Name += "/"
		}
		files[header.Name] = found{header, string(text)}
	}
}

func loadImage(t *testing.T, images store, text string) v1.Image {
	t.Helper()
	tag, err := parseTag(text)
	must(t, err)
	image, err := images.load(tag)
	must(t, err)
	return image
}

func digestOf(t *testing.T, images store, tag string) string {
	t.Helper()
	digest, err := loadImage(t, images, tag).Digest()
	must(t, err)
	return digest.String()
}

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q isn't in: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a line: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
