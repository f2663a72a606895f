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

func (s store) save(reference name.Reference, image v1.Image) error {
	err := os.RemoveAll(s.path(reference))
	if err == nil {
		var folder layout.Path
		if folder, err = layout.Write(s.path(reference), empty.Index); err == nil {
			err = folder.AppendImage(image)
		}
	}
	if err != nil {
		return fmt.Errorf("keeping %s: %w", reference, err)
	}
	return nil
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
	if len(manifest.Manifests) != 1 { // saving it was interrupted
		return nil, fmt.Errorf("%s isn't complete in %s: build it again", reference, s)
	}
	return index.Image(manifest.Manifests[0].Digest)
}
