// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build images

package images

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// serveRegistry starts a registry on this machine, which ends with the test.
func serveRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// file is part of a stand-in. A name that ends with a slash is that of a folder.
type file struct {
	name string
	mode int64
	uid  int
	// from is the file of this machine that it is, and to where it leads, as a link.
	from, to string
}

// shell is all that a RUN needs.
var shell = []file{
	{name: "bin/", mode: 0o755},
	{name: "bin/busybox", mode: 0o755, from: "/bin/busybox"},
	{name: "bin/sh", to: "busybox"},
	{name: "tmp/", mode: 0o1777},
}

const note = "a stand-in, for tests without a network; not the image of that name"

// pushGoToolset stands in for ubi9/go-toolset. The user and the folder are those of that image; the toolchain, the modules
// and the build cache are this machine's, mounted by the test.
func pushGoToolset(t *testing.T, tag string) {
	t.Helper()
	files := append([]file{
		{name: "opt/", mode: 0o755},
		{name: "opt/app-root/", mode: 0o775, uid: 1001},
		{name: "opt/app-root/src/", mode: 0o775, uid: 1001},
	}, shell...)
	pushStandIn(t, tag, files, v1.Config{
		User:       "1001",
		WorkingDir: "/opt/app-root/src",
		Env: []string{
			"HOME=/opt/app-root/src", "PATH=" + mountedGo + "/bin:/bin",
			"GOPROXY=file://" + mountedModules, "GOCACHE=" + mountedCache,
		},
	})
}

// pushUBIMinimal stands in for ubi9/ubi-minimal, which labels itself with all that certification asks of the image on it.
func pushUBIMinimal(t *testing.T, tag string) {
	t.Helper()
	labels := map[string]string{}
	for _, label := range certified {
		labels[label] = note
	}
	pushStandIn(t, tag, shell, v1.Config{Labels: labels, Env: []string{"PATH=/bin"}, Cmd: []string{"/bin/sh"}})
}

// pushOPM stands in for operator-framework/opm, with the opm that make builds.
func pushOPM(t *testing.T, tag string) {
	t.Helper()
	pushStandIn(t, tag, []file{
		{name: "bin/", mode: 0o755}, {name: "bin/opm", mode: 0o755, from: root + "/bin/opm"}, {name: "tmp/", mode: 0o1777},
	}, v1.Config{User: "1001", Entrypoint: []string{"/bin/opm"}, Env: []string{"PATH=/bin"}})
}

func pushStandIn(t *testing.T, tag string, files []file, config v1.Config) {
	t.Helper()
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: file.mode, Uid: file.uid, Linkname: file.to}
		var content []byte
		if file.to != "" {
			header.Typeflag = tar.TypeSymlink
		}
		if file.from != "" {
			var err error
			content, err = os.ReadFile(file.from)
			must(t, err)
			header.Size = int64(len(content))
		}
		must(t, archive.WriteHeader(header))
		_, err := archive.Write(content)
		must(t, err)
	}
	must(t, archive.Close())

	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
	must(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	must(t, err)
	if config.Labels == nil {
		config.Labels = map[string]string{}
	}
	config.Labels["com.example.memcached-operator.stand-in"] = note
	configFile, err := image.ConfigFile()
	must(t, err)
	configFile = configFile.DeepCopy()
	configFile.OS, configFile.Architecture, configFile.Config = "linux", runtime.GOARCH, config
	image, err = mutate.ConfigFile(image, configFile)
	must(t, err)
	must(t, crane.Push(image, tag))
}
