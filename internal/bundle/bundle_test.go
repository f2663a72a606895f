// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestCommittedBundleIsUpToDate(t *testing.T) {
	if diff := cmp.Diff(texts(committed(t)), texts(build(t, makeRequest(t)))); diff != "" {
		t.Errorf("run `make bundle` and commit what it writes (-committed +made):\n%s", diff)
	}
}

func TestSameInputGivesTheSameBytes(t *testing.T) {
	first := texts(build(t, request()))
	for range 5 {
		if diff := cmp.Diff(first, texts(build(t, request()))); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	}
}

func texts(files Files) map[string]string {
	all := map[string]string{}
	for name, content := range files {
		all[name] = string(content)
	}
	return all
}

func TestPinnedBundleDiffersInImagesAndInWhatItClaims(t *testing.T) {
	asked := pinnedRequest(t)
	tags, digests := load(t, build(t, request())).CSV, load(t, build(t, asked)).CSV

	var names []string
	for _, image := range digests.Spec.RelatedImages {
		names = append(names, image.Name)
		want := strings.TrimSuffix(asked.Images[image.Name], ":v1") + "@"
		if !strings.HasPrefix(image.Image, want) || !pinned.MatchString(image.Image) {
			t.Errorf("%s is %s, want %ssha256:…", image.Name, image.Image, want)
		}
	}
	if diff := cmp.Diff([]string{"kube-rbac-proxy", "manager", "memcached"}, names); diff != "" {
		t.Errorf("related images (-want +got):\n%s", diff)
	}

	for _, use := range uses(digests) {
		*use.image = "image"
	}
	for _, use := range uses(tags) {
		*use.image = "image"
	}
	for _, csv := range []*v1alpha1.ClusterServiceVersion{tags, digests} {
		csv.Spec.RelatedImages = nil
		delete(csv.Annotations, "containerImage")
	}
	tags.Annotations["features.operators.openshift.io/disconnected"] = "true"
	if diff := cmp.Diff(tags, digests); diff != "" {
		t.Errorf("(-tags +digests):\n%s", diff)
	}
}

func TestDigestIsThatOfTheIndex(t *testing.T) {
	asked := pinnedRequest(t)
	digest, err := Digest(context.Background(), asked.Images["manager"])
	if err != nil {
		t.Fatal(err)
	}
	again, err := pin(context.Background(), strings.TrimSuffix(asked.Images["manager"], ":v1")+"@"+digest, Digest)
	if err != nil || !strings.HasSuffix(again, "@"+digest) {
		t.Errorf("an image that has a digest became %q, %v", again, err)
	}
}

func TestPinningLeavesTheNameOfAnImageAsItIsWritten(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for image, want := range map[string]string{
		"docker.io/library/memcached:1.6.45":                   "docker.io/library/memcached@",
		"registry.example.com:5000/memcached:1.6.45":           "registry.example.com:5000/memcached@",
		"registry.example.com:5000/memcached@" + digest:        "registry.example.com:5000/memcached@",
		"registry.example.com:5000/memcached:1.6.45@" + digest: "registry.example.com:5000/memcached@",
	} {
		got, err := pin(context.Background(), image, func(context.Context, string) (string, error) { return digest, nil })
		if err != nil || got != want+digest {
			t.Errorf("%s became %q, %v, want %s%s", image, got, err, want, digest)
		}
	}
}

func TestAPageInARegistrysPlaceHasNoDigest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	t.Cleanup(server.Close)
	digest, err := Digest(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/a:v1")
	if err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Errorf("it is %q, %v", digest, err)
	}
}

func TestUpgradeEdges(t *testing.T) {
	for name, test := range map[string]struct{ version, previous, replaces, skipRange string }{
		"the first version replaces none":               {"0.1.0", "", "", ""},
		"a patch skips the patches before":              {"0.1.3", "0.1.2", "memcached-operator.v0.1.2", ">=0.1.0 <0.1.3"},
		"a minor version skips those of the one before": {"0.2.0", "0.1.4", "memcached-operator.v0.1.4", ">=0.1.0 <0.2.0"},
		"a major version doesn't reach further back":    {"1.0.0", "0.9.1", "memcached-operator.v0.9.1", ">=0.9.0 <1.0.0"},
		"a release replaces its candidate":              {"0.2.0", "0.2.0-rc.1", "memcached-operator.v0.2.0-rc.1", ">=0.2.0-rc.1 <0.2.0"},
		"a candidate replaces the last release":         {"0.2.0-rc.1", "0.1.4", "memcached-operator.v0.1.4", ">=0.1.0 <0.2.0-rc.1"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request()
			asked.Version, asked.PreviousVersion = test.version, test.previous
			b := load(t, build(t, asked))
			if b.CSV.Name != "memcached-operator.v"+test.version || b.CSV.Spec.Version.String() != test.version {
				t.Errorf("the bundle is %s with version %s", b.CSV.Name, b.CSV.Spec.Version)
			}
			if b.CSV.Spec.Replaces != test.replaces || b.CSV.Annotations["olm.skipRange"] != test.skipRange {
				t.Errorf("replaces %q and skips %q", b.CSV.Spec.Replaces, b.CSV.Annotations["olm.skipRange"])
			}
			for rule, complaints := range broken(b, false) {
				t.Errorf("%s: %v", rule, complaints)
			}
		})
	}
}

func TestImagesCanBeChosen(t *testing.T) {
	asked := request()
	asked.Images = map[string]string{"manager": "example.com/mine:v7", "memcached": "example.com/memcached:2"}
	b := load(t, build(t, asked))
	want := map[string]string{
		"annotation containerImage":                "example.com/mine:v7",
		"container manager":                        "example.com/mine:v7",
		"container kube-rbac-proxy":                "registry.redhat.io/openshift4/ose-kube-rbac-proxy-rhel9:v4.18",
		"variable manager/RELATED_IMAGE_MEMCACHED": "example.com/memcached:2",
	}
	if diff := cmp.Diff(want, b.images()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each bad input is told of in one line that has the field, the value and the remedy.
func TestBadInput(t *testing.T) {
	const base = "manifests/bases/memcached-operator.clusterserviceversion.yaml"
	const manager = "manager/manager.yaml"
	for name, test := range map[string]struct {
		request func(*Request)
		config  func(*testing.T, string)
		want    []string
	}{
		"VERSION isn't semantic": {
			request: func(r *Request) { r.Version = "1.0" },
			want:    []string{"VERSION", `"1.0"`, "such as 0.1.0"},
		},
		"VERSION has a v": {
			request: func(r *Request) { r.Version = "v0.1.0" },
			want:    []string{"VERSION", `"v0.1.0"`, "without a v"},
		},
		"VERSION is empty": {
			request: func(r *Request) { r.Version = "" },
			want:    []string{"VERSION", `""`, "such as 0.1.0"},
		},
		"VERSION has build metadata": {
			request: func(r *Request) { r.Version = "0.1.0+5" },
			want:    []string{"VERSION", `"0.1.0+5"`, "leave out build metadata"},
		},
		"PREVIOUS_VERSION isn't semantic": {
			request: func(r *Request) { r.PreviousVersion = "none" },
			want:    []string{"PREVIOUS_VERSION", `"none"`, "such as 0.1.0"},
		},
		"PREVIOUS_VERSION is newer": {
			request: func(r *Request) { r.PreviousVersion = "0.2.0" },
			want:    []string{"PREVIOUS_VERSION", `"0.2.0"`, `VERSION, "0.1.0"`, "give the version that this one replaces"},
		},
		"PREVIOUS_VERSION is the same": {
			request: func(r *Request) { r.PreviousVersion = "0.1.0" },
			want:    []string{"PREVIOUS_VERSION", `"0.1.0"`, "not older"},
		},
		"CHANNELS is empty": {
			request: func(r *Request) { r.Channels = []string{""} },
			want:    []string{"CHANNELS", `""`, "comma-separated list"},
		},
		"CHANNELS has a space": {
			request: func(r *Request) { r.Channels = []string{"stable-v1", " fast"} },
			want:    []string{"CHANNELS", `" fast"`, "comma-separated list"},
		},
		"DEFAULT_CHANNEL is none of CHANNELS": {
			request: func(r *Request) { r.DefaultChannel = "stable" },
			want:    []string{"DEFAULT_CHANNEL", `"stable"`, `"candidate-v1,stable-v1"`, "give one of them"},
		},
		"an image of an unknown name": {
			request: func(r *Request) { r.Images = map[string]string{"operator": "example.com/a:b"} },
			want:    []string{`"operator"`, "config/images/images.env"},
		},
		"an image that is none": {
			request: func(r *Request) { r.Images = map[string]string{"manager": "example.com/A b"} },
			want:    []string{"IMG", "manager", `"example.com/A b"`, "such as quay.io/"},
		},
		"an image without a tag": {
			request: func(r *Request) { r.Images = map[string]string{"manager": "example.com/a"} },
			want:    []string{"IMG", "manager", `"example.com/a"`, "its tag or digest", "such as quay.io/"},
		},
		"an image that can't be pinned": {
			request: func(r *Request) {
				r.Digest = func(_ context.Context, image string) (string, error) { return "", errors.New(image + " has no digest") }
			},
			want: []string{"pinning image", "has no digest"},
		},
		"an annotation that isn't pinned": {
			request: func(r *Request) {
				r.Digest = func(context.Context, string) (string, error) { return "sha256:" + strings.Repeat("0", 64), nil }
			},
			config: edit(base, "    support:", "    operators.openshift.io/must-gather-image: quay.io/a/b:v1\n    support:"),
			want:   []string{`"operators.openshift.io/must-gather-image"`, `"quay.io/a/b:v1"`, "by its digest"},
		},
		"an image is missing in the images file": {
			config: edit("images/images.env", "kube-rbac-proxy=", "# kube-rbac-proxy="),
			want:   []string{"config/images/images.env", `"kube-rbac-proxy"`, "kustomization.yaml", "add a line kube-rbac-proxy=REFERENCE"},
		},
		"a container's image isn't from the images file": {
			config: edit("default/manager_auth_proxy_patch.yaml", "      - name: kube-rbac-proxy\n",
				"      - {name: more, image: \"example.com/more:v1\"}\n      - name: kube-rbac-proxy\n"),
			want: []string{"the image of container more", `"example.com/more:v1"`, "config/images/images.env", "add it there"},
		},
		"a variable's image isn't from the images file": {
			config: edit(manager, "        - name: RELATED_IMAGE_MEMCACHED", "        - {name: RELATED_IMAGE_MORE, value: more}\n        - name: RELATED_IMAGE_MEMCACHED"),
			want:   []string{"RELATED_IMAGE_MORE of container manager", `"more"`, "add it there"},
		},
		"the base has no icon": {
			config: edit(base, "  icon:", "  # icon:", "  - base64data:", "  # - base64data", "    mediatype:", "  # mediatype"),
			want:   []string{base, "spec.icon", "[]", "give one icon"},
		},
		"the icon isn't in base64": {
			config: edit(base, "base64data: PHN2Zy", "base64data: <svg>"),
			want:   []string{base, "spec.icon[0].base64data", "base64 -w0"},
		},
		"the base has no name for people": {
			config: edit(base, "displayName: Memcached Operator", `displayName: ""`),
			want:   []string{base, "spec.displayName", "empty", "give the name that people see"},
		},
		"the base has no maintainers": {
			config: edit(base, "  maintainers:\n", "  maintainers: [] #", "  - name: The Memcached", "  # - name: The Memcached", "    email: mem", "  # email: mem"),
			want:   []string{base, "spec.maintainers", "empty", "give a name and an email"},
		},
		"the base has no time": {
			config: edit(base, `createdAt: "`, `createdAt: "yesterday, `),
			want:   []string{base, "metadata.annotations.createdAt", `"yesterday, `, "such as 2026-12-01T00:00:00Z"},
		},
		"the base has a misspelled field": {
			config: edit(base, "  maturity: beta", "  maturaty: beta"),
			want:   []string{"ClusterServiceVersion", "maturaty"},
		},
		"the base describes another API": {
			config: edit(base, "      version: v1\n      displayName", "      version: v2\n      displayName"),
			want:   []string{base, "spec.customresourcedefinitions.owned", "v2 Memcached", "v1 Memcached", "describe each version"},
		},
		"a sample has a value that the CRD refuses": {
			config: edit("samples/cache_v1_memcached.yaml", "size: 3", "size: -3"),
			want:   []string{"config/samples", "memcached-sample", "spec.size", "-3", "greater than or equal to 0", "change the sample"},
		},
		"a sample has an unknown field": {
			config: edit("samples/cache_v1_memcached.yaml", "size: 3", "size: 3\n  replicas: 3"),
			want:   []string{"memcached-sample", "spec.replicas", "unknown field", "change the sample"},
		},
		"a sample lacks a field": {
			config: edit("samples/cache_v1_memcached.yaml", "size: 3", "imagePolicy: Keep"),
			want:   []string{"memcached-sample", "spec.size", "Required", "change the sample"},
		},
		"a sample breaks a rule": {
			config: edit("samples/cache_v1_memcached.yaml", "name: memcached-sample", "name: 1memcached"),
			want:   []string{"1memcached", "metadata.name must", "change the sample"},
		},
		"a sample repeats the key of a list": {
			config: edit("samples/cache_v1_memcached.yaml", "size: 3", "size: 3\n  imagePullSecrets: [{name: a}, {name: a}]"),
			want:   []string{"memcached-sample", "spec.imagePullSecrets[1]", "Duplicate", "change the sample"},
		},
		"a sample is of a version that there isn't": {
			config: edit("samples/cache_v1_memcached.yaml", "cache.example.com/v1", "cache.example.com/v2"),
			want:   []string{"memcached-sample", "apiVersion", `"v2"`, "change the sample"},
		},
		"a kind that OLM doesn't install": {
			config: edit("manager/metrics_service.yaml", "apiVersion: v1\n", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: job}\n---\napiVersion: v1\n"),
			want:   []string{"CronJob", "job", "leave it out"},
		},
		"a binding grants a role that isn't there": {
			config: edit("manifests/manager_role_binding.yaml", "name: memcached-operator-manager-role\n", "name: nothing\n"),
			want:   []string{"memcached-operator-manager-rolebinding", "ClusterRole nothing", "add it"},
		},
		"a binding's subject isn't there": {
			config: edit("manifests/manager_role_binding.yaml", "  name: memcached-operator-controller-manager", "  name: somebody"),
			want:   []string{"memcached-operator-manager-rolebinding", "ServiceAccount somebody", "name one of"},
		},
		"config isn't there": {
			request: func(r *Request) { r.Config = filepath.Join(r.Config, "nowhere") },
			want:    []string{"images.env", "no such file"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request()
			if test.config != nil {
				asked.Config = filepath.Join(t.TempDir(), "config")
				if err := os.CopyFS(asked.Config, os.DirFS(filepath.Join(root, "config"))); err != nil {
					t.Fatal(err)
				}
				test.config(t, asked.Config)
			}
			if test.request != nil {
				test.request(&asked)
			}
			_, err := Build(context.Background(), asked)
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q doesn't say %q", err, part)
				}
			}
		})
	}
}

// edit replaces text, given in pairs of old and new, in a file of the configuration.
func edit(file string, pairs ...string) func(*testing.T, string) {
	return func(t *testing.T, config string) {
		t.Helper()
		path := filepath.Join(config, file)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		for pair := range slices.Chunk(pairs, 2) {
			if !strings.Contains(text, pair[0]) {
				t.Fatalf("%s has no %q", file, pair[0])
			}
			text = strings.Replace(text, pair[0], pair[1], 1)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriteReplacesTheBundleAsAWhole(t *testing.T) {
	dir := t.TempDir()
	if err := (Files{"bundle/old/file": []byte("old"), "bundle.Dockerfile": []byte("old")}).Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := (Files{"bundle/new/file": []byte("new"), "bundle.Dockerfile": []byte("new")}).Write(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"bundle/new/file": "new", "bundle.Dockerfile": "new"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteThatFailsLeavesTheOldBundle(t *testing.T) {
	old := map[string]string{"bundle/file": "old", "bundle.Dockerfile": "old"}
	for name, test := range map[string]struct {
		files   Files
		prepare func(*testing.T, string)
	}{
		"a file can't be written": {
			files: Files{"bundle/a": []byte("new"), "bundle/a/b": []byte("new"), "bundle.Dockerfile": []byte("new")},
		},
		"an entry can't be moved": {
			files: Files{"bundle/file": []byte("new"), "bundle.Dockerfile": []byte("new"), "nowhere/\x00": []byte("new")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := Files{}
			for name, text := range old {
				files[name] = []byte(text)
			}
			if err := files.Write(dir); err != nil {
				t.Fatal(err)
			}
			if err := test.files.Write(dir); err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(old, tree(t, dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The moves that were made are undone when a later one fails.
func TestSwapUndoesItsMoves(t *testing.T) {
	dir := t.TempDir()
	root, fresh, stale := filepath.Join(dir, "root"), filepath.Join(dir, "fresh"), filepath.Join(dir, "stale")
	for path, text := range map[string]string{"root/a": "old", "root/b": "old", "fresh/a": "new", "stale/c": ""} { // fresh has no b
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err := swap([]string{"a", "b"}, root, fresh, stale)
	if err == nil || !strings.Contains(err.Error(), "replacing b") {
		t.Errorf("got %v", err)
	}
	want := map[string]string{"a": "old", "b": "old"}
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
