// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// store is a folder of images. Each is an OCI layout of its own, so that one that is replaced leaves nothing behind.
type store string

func (s store) path(reference name.Reference) string {
	return filepath.Join(string(s), reference.Name())
}

// save keeps an image whole or not at all, whoever else builds meanwhile.
func (s store) save(reference name.Reference, image v1.Image) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keeping %s: %w", reference, err)
		}
	}()
	path := s.path(reference)
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(string(s), ".work-") // in the same file system
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	fresh := filepath.Join(work, "new")
	folder, err := layout.Write(fresh, empty.Index)
	if err != nil {
		return err
	}
	if err = folder.AppendImage(image); err != nil {
		return err
	}
	for n := 0; ; n++ {
		err = os.Rename(path, filepath.Join(work, fmt.Sprintf("old-%d", n)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err = os.Rename(fresh, path); !errors.Is(err, fs.ErrExist) { // which it is if another was quicker
			return err
		}
	}
}

func (s store) load(reference name.Reference) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(s.path(reference))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s isn't in %s: build it first, with this tool", reference, s)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", reference, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", reference, err)
	}
	if len(manifest.Manifests) != 1 { // somebody interfered
		return nil, fmt.Errorf("%s isn't complete in %s: build it again", reference, s)
	}
	return index.Image(manifest.Manifests[0].Digest)
}
