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
func paths(image v1.Image) (found map[string]byte, err error) {
	content := mutate.Extract(image)
	defer func() { err = errors.Join(err, content.Close()) }()
	found = map[string]byte{"/": tar.TypeDir}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing its files: %w", err)
		}
		found[path.Join("/", header.Name)] = header.Typeflag
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
	isFolder := strings.HasSuffix(c.DestPath, "/") || path.Base(c.DestPath) == "." || b.paths[destination] == tar.TypeDir
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
	if b.paths[destination] == tar.TypeDir {
		return fmt.Errorf("COPY of the file %s to %s, which is a folder: rename one of them", source, destination)
	}
	if err := b.makeFolders(to, path.Dir(destination)); err != nil {
		return err
	}
	return b.put(to, source, info, destination)
}

// copyFolder copies what is in a folder, and not the folder itself.
func (b *builder) copyFolder(to layer, source, destination string) error {
	if err := b.makeFolders(to, destination); err != nil {
		return err
	}
	return b.files.walk(source, func(file string, info fs.FileInfo) error {
		target := path.Join(destination, strings.TrimPrefix(file, source+"/"))
		if !info.IsDir() {
			return b.copyFile(to, file, info, target)
		}
		if isThere, err := b.leadsOn(target); isThere || err != nil {
			return err
		}
		if err := b.makeFolders(to, path.Dir(target)); err != nil {
			return err
		}
		return b.put(to, file, info, target)
	})
}

func (b *builder) put(to layer, source string, info fs.FileInfo, destination string) error {
	if err := to.put(destination, info, b.files, source); err != nil {
		return err
	}
	b.paths[destination] = to[destination].header.Typeflag
	return nil
}

// makeFolders adds those folders on the way to one that aren't there yet, and that one.
func (b *builder) makeFolders(to layer, folder string) error {
	for ; ; folder = path.Dir(folder) {
		if isThere, err := b.leadsOn(folder); isThere || err != nil {
			return err
		}
		b.paths[folder] = tar.TypeDir
		to[folder] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
	}
}

// leadsOn tells whether there is a folder, or a link, which is taken for one to a folder.
func (b *builder) leadsOn(folder string) (bool, error) {
	kind, isThere := b.paths[folder]
	if isThere && kind != tar.TypeDir && kind != tar.TypeSymlink {
		return false, fmt.Errorf("%s is a file, and something should be put into it: rename one of them", folder)
	}
	return isThere, nil
}
