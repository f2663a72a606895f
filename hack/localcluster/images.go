// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	pauseImage   = "registry.k8s.io/pause:3.10.1"
	coreDNSImage = "registry.k8s.io/coredns/coredns:v1.15.0"
)

// memcachedImages have the same content, but different labels and so different digests: a change of image can be tested.
var memcachedImages = []string{"docker.io/library/memcached:1.6.45", "docker.io/library/memcached:1.6.44"}

// memcachedUser has the id that it has in the official image.
const (
	memcachedUser = "memcache"
	memcachedUID  = "11211"
)

const (
	nonRootUser   = "65532"
	standInLabel  = "com.example.memcached-operator.stand-in"
	imagePath     = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	titleLabel    = "org.opencontainers.image.title"
	describeLabel = "org.opencontainers.image.description"
)

// file is what an image has at a path.
type file struct {
	path    string
	mode    int64
	content []byte
}

// pushOwnImages makes what the cluster itself needs, and memcached.
func pushOwnImages(ctx context.Context) error {
	for _, own := range []struct{ image, binary string }{
		{pauseImage, filepath.Join(toolDir, "pause")},
		{coreDNSImage, filepath.Join(toolDir, "coredns")},
	} {
		if err := pushBinary(ctx, own.image, own.binary); err != nil {
			return err
		}
	}
	files, version, err := debianMemcached(ctx)
	if err != nil {
		return err
	}
	for _, replaced := range memcachedImages {
		image, err := memcachedImage(replaced, version, files)
		if err != nil {
			return err
		}
		if err := pushImage(ctx, replaced, image); err != nil {
			return err
		}
	}
	return nil
}

// push is the command: each argument says under which name which binary is to be had in the cluster.
func push(ctx context.Context, args []string) error {
	if err := requireNode(); err != nil {
		return err
	}
	for _, arg := range args {
		image, binary, found := strings.Cut(arg, "=")
		if !found || image == "" || binary == "" {
			return fmt.Errorf("pushing %q: this must be IMAGE=BINARY", arg)
		}
		if err := pushBinary(ctx, image, binary); err != nil {
			return err
		}
		progress("Pushed %s for the name %s", binary, image)
	}
	return nil
}

func pushBinary(ctx context.Context, replaced, binary string) error {
	image, err := binaryImage(replaced, binary)
	if err != nil {
		return err
	}
	return pushImage(ctx, replaced, image)
}

func pushImage(ctx context.Context, upstream string, image v1.Image) error {
	reference, err := localReference(upstream)
	if err != nil {
		return err
	}
	transport, err := clusterTransport()
	if err != nil {
		return err
	}
	if err := remote.Write(reference, image, remote.WithContext(ctx), remote.WithTransport(transport)); err != nil {
		return fmt.Errorf("pushing %s: %w", upstream, err)
	}
	return nil
}

// localReference is where the local registry has the image that pods know by its upstream name.
func localReference(upstream string) (name.Reference, error) {
	reference, err := name.ParseReference(upstream)
	if err != nil {
		return nil, fmt.Errorf("reading the image name %s: %w", upstream, err)
	}
	host := reference.Context().RegistryStr()
	switch host {
	case registryAddress:
		return reference, nil
	case name.DefaultRegistry:
		// The library's name for it differs from containerd's.
		host = "docker.io"
	}
	tag, isTag := reference.(name.Tag)
	if !isTag {
		return nil, fmt.Errorf("reading the image name %s: it must have a tag", upstream)
	}
	return name.ParseReference(registryAddress + "/" + host + "/" + reference.Context().RepositoryStr() + ":" + tag.TagStr())
}

// binaryImage has one static binary and nothing else.
func binaryImage(replaced, binary string) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the binary of %s: %w", replaced, err)
	}
	entrypoint := "/" + filepath.Base(binary)
	return newImage([]file{{entrypoint, 0o755, content}}, v1.Config{
		Entrypoint: []string{entrypoint},
		User:       nonRootUser,
		Env:        []string{imagePath},
		Labels:     standInLabels(replaced, "A local build of "+filepath.Base(binary)),
	})
}

// memcachedImage runs Debian's memcached the way that the official image runs its own.
func memcachedImage(replaced, version string, files []file) (v1.Image, error) {
	description := "Debian's memcached " + version
	note := file{"/etc/stand-in", 0o644, fmt.Appendf(nil, "%s, in the place of %s.\n", description, replaced)}
	return newImage(append([]file{note}, files...), v1.Config{
		Cmd:          []string{"memcached"},
		User:         memcachedUser,
		Env:          []string{imagePath},
		ExposedPorts: map[string]struct{}{"11211/tcp": {}},
		Labels:       standInLabels(replaced, description),
	})
}

func standInLabels(replaced, description string) map[string]string {
	return map[string]string{
		standInLabel:  "true",
		titleLabel:    replaced,
		describeLabel: description + ", for tests on a local cluster; not the image of that name",
	}
}

// debianMemcached collects the machine's memcached and what it needs to run, and its version.
func debianMemcached(ctx context.Context) ([]file, string, error) {
	binary, err := exec.LookPath("memcached")
	if err != nil {
		return nil, "", fmt.Errorf("looking for memcached: %w", err)
	}
	output, err := exec.CommandContext(ctx, binary, "-V").Output()
	if err != nil {
		return nil, "", fmt.Errorf("asking memcached for its version: %w", err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(output)), "memcached ")
	linked, err := exec.CommandContext(ctx, "ldd", binary).Output()
	if err != nil {
		return nil, "", fmt.Errorf("asking for memcached's libraries: %w", err)
	}

	files := []file{
		{"/etc/passwd", 0o644, []byte("root:x:0:0::/:/sbin/nologin\n" +
			memcachedUser + ":x:" + memcachedUID + ":" + memcachedUID + "::/:/sbin/nologin\n")},
		{"/etc/group", 0o644, []byte("root:x:0:\n" + memcachedUser + ":x:" + memcachedUID + ":\n")},
	}
	for _, source := range append(libraries(string(linked)), binary) {
		content, err := os.ReadFile(source)
		if err != nil {
			return nil, "", fmt.Errorf("reading a part of memcached: %w", err)
		}
		files = append(files, file{source, 0o755, content})
	}
	return files, version, nil
}

// lddPath finds the path in "libevent-2.1.so.7 => /lib/libevent-2.1.so.7 (0x…)" and in "/lib64/ld-linux-x86-64.so.2 (0x…)".
var lddPath = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// libraries reads what ldd wrote.
func libraries(ldd string) []string {
	var paths []string
	for _, match := range lddPath.FindAllStringSubmatch(ldd, -1) {
		paths = append(paths, match[1])
	}
	return paths
}

// newImage makes an image of one layer. The same input makes the same bytes, and so the same digest.
func newImage(files []file, config v1.Config) (v1.Image, error) {
	layer, err := layerOf(files)
	if err != nil {
		return nil, err
	}
	// Not compressed: it stays on this machine.
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, static.NewLayer(layer, types.OCIUncompressedLayer))
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	configFile, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	configFile = configFile.DeepCopy()
	configFile.OS, configFile.Architecture, configFile.Config = "linux", runtime.GOARCH, config
	image, err = mutate.ConfigFile(image, configFile)
	if err != nil {
		return nil, fmt.Errorf("setting the image's configuration: %w", err)
	}
	return image, nil
}

// layerOf writes files, and the folders they are in, as a tar archive in the order of their paths.
func layerOf(files []file) ([]byte, error) {
	headers := map[string]*tar.Header{}
	contents := map[string][]byte{}
	for _, file := range files {
		for dir := path.Dir(file.path); dir != "/"; dir = path.Dir(dir) {
			headers[dir] = &tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o755}
		}
		headers[file.path] = &tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(file.path, "/"), Mode: file.mode, Size: int64(len(file.content)),
		}
		contents[file.path] = file.content
	}

	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	for _, entry := range slices.Sorted(maps.Keys(headers)) {
		header := headers[entry]
		header.ModTime = time.Unix(0, 0)
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", entry, err)
		}
		if _, err := archive.Write(contents[entry]); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", entry, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("closing a layer: %w", err)
	}
	return layer.Bytes(), nil
}
