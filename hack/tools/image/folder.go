// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// folder is where COPY takes files from: a folder without what its .dockerignore names. Nothing outside it can be reached,
// through links either.
type folder struct {
	root    *os.Root
	ignored *patternmatcher.PatternMatcher
}

const ignoreFile = ".dockerignore"

func openFolder(name string) (*folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening the folder to copy files from: %w", err)
	}
	text, err := root.ReadFile(ignoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening the folder to copy files from: %w", err)
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ignoreFile, err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ignoreFile, err)
	}
	return &folder{root, ignored}, nil
}

// match finds what a source of COPY names.
func (f *folder) match(pattern string) ([]string, error) {
	inside := path.Join("/", pattern)[1:]
	if inside == "" {
		inside = "."
	}
	matches, err := fs.Glob(f.root.FS(), inside)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, match := range matches {
		skip, err := f.skips(match)
		if err != nil {
			return nil, err
		}
		if !skip {
			found = append(found, match)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no such file in %s, or %s leaves it out", f.root.Name(), ignoreFile)
	}
	return found, nil
}

// skips tells whether nothing of a file or folder may be copied: what is in an ignored folder may be excepted.
func (f *folder) skips(name string) (bool, error) {
	ignored, err := f.ignored.MatchesOrParentMatches(name)
	if err != nil || !ignored {
		return false, err
	}
	err = f.walk(name, func(string, fs.FileInfo) error {
		ignored = false
		return fs.SkipAll
	})
	return ignored, err
}

// walk visits all that may be copied in a folder, but not the folder itself.
func (f *folder) walk(name string, visit func(string, fs.FileInfo) error) error {
	return fs.WalkDir(f.root.FS(), name, func(file string, found fs.DirEntry, err error) error {
		if err != nil || file == name {
			return err
		}
		ignored, err := f.ignored.MatchesOrParentMatches(file)
		if err != nil || ignored {
			return err
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		return visit(file, info)
	})
}

// stat follows links, unlike walk: a link that COPY names is copied as what it leads to.
func (f *folder) stat(name string) (fs.FileInfo, error) { return f.root.Stat(name) }

func (f *folder) read(name string) ([]byte, error) { return f.root.ReadFile(name) }

func (f *folder) readLink(name string) (string, error) { return f.root.Readlink(name) }
