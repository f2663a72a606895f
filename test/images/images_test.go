// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build images

// Package images tests the images that the project ships: all Dockerfiles are built for real, by make, with buildah and
// with our own tool. The images that they are based on are stand-ins, made here and served by a registry of the test. What
// a cluster does with them is left to test/e2e.
package images

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// certified are the labels that Red Hat's certification asks for, and those that ubi-minimal would otherwise lend.
var certified = []string{
	"name", "vendor", "maintainer", "version", "release", "url", "summary", "description",
	"io.k8s.display-name", "io.k8s.description", "io.openshift.tags",
}

func TestTheManagersImage(t *testing.T) {
	registry := serveRegistry(t)
	pushGoToolset(t, registry+"/ubi9/go-toolset:1.26")
	pushUBIMinimal(t, registry+"/ubi9/ubi-minimal:9.8")
	succeed(t, exec.CommandContext(t.Context(), "go", "-C", root, "mod", "download"))
	tag := registry + "/memcached-operator:v9.8.7"
	newBuildah(t, registry).make(t, "docker-build", "docker-push", "VERSION=9.8.7", "IMG="+tag)

	image := pull(t, tag)
	config := configOf(t, image).Config
	if config.User != "1001" {
		t.Errorf("runs as %q", config.User)
	}
	if diff := cmp.Diff([]string{"/manager"}, config.Entrypoint); diff != "" || len(config.Cmd) > 0 {
		t.Errorf("runs %q %q", config.Entrypoint, config.Cmd)
	}
	if config.Labels["version"] != "9.8.7" || config.Labels["name"] != "example-inc/memcached-operator" {
		t.Errorf("labels: %v", config.Labels)
	}
	for _, label := range certified {
		if value := config.Labels[label]; value == "" || value == note {
			t.Errorf("label %s is %q", label, value)
		}
	}
	layers, err := image.Layers()
	must(t, err)
	if len(layers) > 40 {
		t.Errorf("%d layers, and certification allows 40", len(layers))
	}

	files := filesOf(t, image)
	licence, err := os.ReadFile(root + "/LICENSE")
	must(t, err)
	if got := files["licenses/LICENSE"]; got.content != string(licence) || got.mode&0o444 != 0o444 {
		t.Errorf("/licenses/LICENSE has mode %o and %d bytes", got.mode, len(got.content))
	}
	for _, ours := range []string{"licenses", "licenses/LICENSE", "manager"} {
		delete(files, ours)
	}
	base := filesOf(t, pull(t, registry+"/ubi9/ubi-minimal:9.8"))
	if diff := cmp.Diff(base, files, cmp.AllowUnexported(content{})); diff != "" {
		t.Errorf("more than the licence and the manager was added (-base +image):\n%s", diff)
	}

	unpacked := unpack(t, image)
	if said := succeed(t, inside(t, unpacked, "/manager", "--help")); !strings.Contains(said, "-leader-elect") {
		t.Errorf("manager --help says:\n%s", said)
	}
	// Without a cluster it ends, but has said by then which version it is.
	started := inside(t, unpacked, "/manager")
	started.Env = []string{"KUBECONFIG=/nowhere", "RELATED_IMAGE_MEMCACHED=docker.io/library/memcached:1.6.45"}
	said, err := started.CombinedOutput()
	if err == nil || !strings.Contains(string(said), `"9.8.7"`) {
		t.Errorf("ended with %v and said:\n%s", err, said)
	}
}

// Without a container tool, and then with one: the images have the same files and the same configuration.
func TestTheBundleAndTheCatalogWithAndWithoutAContainerTool(t *testing.T) {
	registry := serveRegistry(t)
	pushOPM(t, registry+"/opm:v1")
	variables := func(by string) []string {
		return []string{
			"BUNDLE_IMG=" + registry + "/bundle:" + by, "CATALOG_IMG=" + registry + "/catalog:" + by,
			"OPM_IMG=" + registry + "/opm:v1", "OPM_FLAGS=--use-http",
		}
	}
	// The modes of this machine don't matter: pods, which aren't root, read what is in the images.
	before := syscall.Umask(0o077)
	succeed(t, makefile(t, containerTools(t, false, false),
		append(variables("ours"), "bundle-build", "bundle-push", "catalog-build", "catalog-push")...))
	syscall.Umask(before)
	// Of the same catalog: a new one would be sorted in another way in opm's cache.
	newBuildah(t, registry).make(t,
		append(variables("buildah"), "--old-file=catalog", "bundle-build", "bundle-push", "catalog-build", "catalog-push")...)

	for _, name := range []string{"bundle", "catalog"} {
		ours, theirs := pull(t, registry+"/"+name+":ours"), pull(t, registry+"/"+name+":buildah")
		if diff := cmp.Diff(filesOf(t, theirs), filesOf(t, ours), cmp.AllowUnexported(content{})); diff != "" {
			t.Errorf("the files of the %s (-buildah +ours):\n%s", name, diff)
		}
		want, got := configOf(t, theirs), configOf(t, ours)
		delete(want.Config.Labels, "io.buildah.version")
		if diff := cmp.Diff(want.Config, got.Config); diff != "" {
			t.Errorf("the configuration of the %s (-buildah +ours):\n%s", name, diff)
		}
		if want.OS != got.OS || want.Architecture != got.Architecture {
			t.Errorf("the %s is for %s/%s and not for %s/%s", name, got.OS, got.Architecture, want.OS, want.Architecture)
		}
	}

	catalog := pull(t, registry+"/catalog:ours")
	if file := filesOf(t, catalog)["configs/memcached-operator/catalog.yaml"]; !strings.Contains(file.content, registry+"/bundle:ours") {
		t.Errorf("the catalog doesn't name the bundle's image:\n%s", file.content)
	}
	// As a pod runs it, but that it ends when it has read the cache.
	config := configOf(t, catalog).Config
	serve := append(append(config.Entrypoint, config.Cmd...), "--cache-only", "--cache-enforce-integrity", "--pprof-addr=")
	said := succeed(t, inside(t, unpack(t, catalog), serve...))
	if !strings.Contains(said, "found existing cache contents") || strings.Contains(said, "building cache") {
		t.Errorf("opm doesn't use the cache:\n%s", said)
	}
}

func pull(t *testing.T, tag string) v1.Image {
	t.Helper()
	image, err := crane.Pull(tag)
	must(t, err)
	return image
}

func configOf(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	config, err := image.ConfigFile()
	must(t, err)
	return config.DeepCopy()
}

// content is what a container sees of a file, but for its time.
type content struct {
	kind          byte
	mode          int64
	uid, gid      int
	link, content string
}

func filesOf(t *testing.T, image v1.Image) map[string]content {
	t.Helper()
	files := map[string]content{}
	for archive := tar.NewReader(mutate.Extract(image)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		files[header.Name] = content{header.Typeflag, header.Mode & 0o7777, header.Uid, header.Gid, header.Linkname, string(text)}
	}
}

// unpack makes a root file system of an image.
func unpack(t *testing.T, image v1.Image) string {
	t.Helper()
	folder := t.TempDir()
	must(t, os.Chmod(folder, 0o755))
	command := exec.CommandContext(t.Context(), "tar", "--extract", "--numeric-owner", "--same-permissions", "--directory", folder)
	command.Stdin = mutate.Extract(image)
	succeed(t, command)
	return folder
}

// inside runs a command in a root file system, as a user that the image doesn't know, as on OpenShift.
func inside(t *testing.T, folder string, command ...string) *exec.Cmd {
	t.Helper()
	inside := exec.CommandContext(t.Context(), command[0], command[1:]...)
	inside.Dir, inside.Env = "/", []string{}
	inside.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: 1000680000, Gid: 0}}
	return inside
}
