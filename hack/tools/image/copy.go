// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// paths lists what an image has. A layer must not name the folders of those below it: it would change their modes, or put
// a folder in the place of a link.
func paths(image v1.Image) (found map[string]bool, err error) {
	content := mutate.Extract(image)
	defer func() { err = errors.Join(err, content.Close()) }()
	found = map[string]bool{"/": true}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing its files: %w", err)
		}
		found[path.Join("/", header.Name)] = header.Typeflag == tar.TypeDir
	}
}

// copy adds a layer with the files that a COPY names.
func (b *builder) copy(c *instructions.CopyCommand) error {
	var sources []string
	for _, pattern := range c.SourcePaths {
		matches, err := b.files.match(pattern)
		if err != nil {
			return fmt.Errorf("COPY %s: %w", pattern, err)
		}
		sources = append(sources, matches...)
	}
	destination := b.absolute(c.DestPath)
	isFolder := strings.HasSuffix(c.DestPath, "/") || path.Base(c.DestPath) == "." || b.paths[destination]
	if len(sources) > 1 && !isFolder {
		return fmt.Errorf("COPY of %d files to %s: end it with a slash, so that it is a folder", len(sources), c.DestPath)
	}

	copied := layer{}
	for _, source := range sources {
		info, err := b.files.stat(source)
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			err = b.copyFolder(copied, source, destination)
		case isFolder:
			err = b.copyFile(copied, source, info, path.Join(destination, path.Base(source)))
		default:
			err = b.copyFile(copied, source, info, destination)
		}
		if err != nil {
			return err
		}
	}
	return b.add(copied, c)
}

func (b *builder) copyFile(to layer, source string, info fs.FileInfo, destination string) error {
	b.makeFolders(to, path.Dir(destination))
	b.paths[destination] = info.IsDir()
	return to.put(destination, info, b.files, source)
}

// copyFolder copies what is in a folder, and not the folder itself.
func (b *builder) copyFolder(to layer, source, destination string) error {
	b.makeFolders(to, destination)
	return b.files.walk(source, func(file string, info fs.FileInfo) error {
		target := path.Join(destination, strings.TrimPrefix(file, source+"/"))
		if info.IsDir() && b.paths[target] {
			return nil
		}
		return b.copyFile(to, file, info, target)
	})
}

// makeFolders adds those folders on the way to one that aren't there yet, and that one.
func (b *builder) makeFolders(to layer, folder string) {
	for ; ; folder = path.Dir(folder) {
		if _, exists := b.paths[folder]; exists {
			return
		}
		b.paths[folder] = true
		to[folder] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
	}
}
