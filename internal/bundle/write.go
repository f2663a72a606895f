// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Write replaces the bundle in the folder root. What was there before is gone as a whole, or, if anything fails, is there
// as it was.
func (f Files) Write(root string) (err error) {
	// Beside their places, so that a rename moves them.
	work, err := os.MkdirTemp(root, ".bundle-")
	if err != nil {
		return fmt.Errorf("making room for the bundle: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	fresh, stale := filepath.Join(work, "new"), filepath.Join(work, "old")
	if err := errors.Join(os.Mkdir(fresh, 0o755), os.Mkdir(stale, 0o755)); err != nil {
		return err
	}
	for path, content := range f {
		path = filepath.Join(fresh, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // it holds no secret
			return err
		}
	}
	return swap(f.entries(), root, fresh, stale)
}

// entries are the files and folders of the root itself.
func (f Files) entries() []string {
	seen := map[string]bool{}
	var entries []string
	for path := range f {
		entry, _, _ := strings.Cut(path, "/")
		if !seen[entry] {
			seen[entry] = true
			entries = append(entries, entry)
		}
	}
	return entries
}

// swap moves each entry of root to stale and that of fresh to root. If a move fails, it undoes the moves before.
func swap(entries []string, root, fresh, stale string) error {
	var undo []func() error
	move := func(entry, from, to string) error {
		from, to = filepath.Join(from, entry), filepath.Join(to, entry)
		if err := os.Rename(from, to); err != nil {
			return err
		}
		undo = append(undo, func() error { return os.Rename(to, from) })
		return nil
	}
	for _, entry := range entries {
		err := move(entry, root, stale)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = move(entry, fresh, root)
		}
		if err != nil {
			errs := []error{fmt.Errorf("replacing %s: %w", entry, err)}
			for _, back := range slices.Backward(undo) {
				errs = append(errs, back())
			}
			return errors.Join(errs...)
		}
	}
	return nil
}
