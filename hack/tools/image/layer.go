// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is what an instruction adds to the image, by absolute path.
type layer map[string]entry

type entry struct {
	header  tar.Header
	content []byte
}

// put adds a file, folder or link. It is root's, whoever built the image.
func (l layer) put(destination string, info fs.FileInfo, files *folder, source string) error {
	var link string
	var content []byte
	var err error
	switch info.Mode().Type() {
	case 0:
		content, err = files.read(source)
	case fs.ModeSymlink:
		link, err = files.readLink(source)
	}
	if err != nil {
		return err
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return fmt.Errorf("copying %s: %w", source, err)
	}
	l[destination] = entry{tar.Header{Typeflag: header.Typeflag, Linkname: link, Mode: header.Mode, Size: header.Size}, content}
	return nil
}

// archive writes the layer in the order of its paths: folders come before what is in them.
func (l layer) archive() ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, file := range slices.Sorted(maps.Keys(l)) {
		header := l[file].header
		header.Name, header.ModTime = strings.TrimPrefix(file, "/"), epoch
		if header.Typeflag == tar.TypeDir {
			header.Name += "/"
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", file, err)
		}
		if _, err := archive.Write(l[file].content); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", file, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("closing a layer: %w", err)
	}
	return buffer.Bytes(), nil
}

// add puts a layer onto the image. One without files is none.
func (b *builder) add(l layer, instruction fmt.Stringer) error {
	if len(l) == 0 {
		return nil
	}
	content, err := l.archive()
	if err != nil {
		return err
	}
	manifest, err := b.image.MediaType()
	if err != nil {
		return err
	}
	kind := types.OCILayer
	if manifest == types.DockerManifestSchema2 {
		kind = types.DockerLayer // the two aren't mixed
	}
	compressed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(kind))
	if err != nil {
		return fmt.Errorf("compressing a layer: %w", err)
	}
	b.image, err = mutate.Append(b.image, mutate.Addendum{
		Layer: compressed, History: v1.History{CreatedBy: instruction.String(), Created: v1.Time{Time: epoch}},
	})
	return err
}
