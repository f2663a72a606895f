// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// epoch is the time of all that is built, so that it doesn't depend on when that happens.
var epoch = time.Unix(0, 0).UTC()

// defaultPath is what other tools, too, begin with where there is no image to begin with.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// builder is an image while it is being built.
type builder struct {
	image  v1.Image
	config v1.Config
	// paths are those that the image has, each with its kind as a tar.Header has it.
	paths map[string]byte
	files *folder
	// given are the build arguments of the command line, and arguments those that the Dockerfile has declared so far.
	given, arguments map[string]string
	lex              *shell.Lex
	cmdSet           bool
}

func (d *dockerfile) build(ctx context.Context, pulled store, files *folder, given map[string]string) (v1.Image, error) {
	b := &builder{files: files, given: given, arguments: map[string]string{}, lex: d.lex}
	for _, argument := range d.arguments {
		if err := b.declare(&argument); err != nil {
			return nil, d.at(argument.Location(), err)
		}
	}
	from, err := b.expand(d.stage.BaseName)
	if err == nil {
		b.image, err = pull(ctx, pulled, from)
	}
	if err == nil {
		b.paths, err = paths(b.image)
	}
	if err != nil {
		return nil, d.at(d.stage.Location, err)
	}
	file, err := b.image.ConfigFile()
	if err != nil {
		return nil, d.at(d.stage.Location, err)
	}
	b.config = *file.Config.DeepCopy()

	beforeFrom := b.arguments
	b.arguments = map[string]string{}
	for _, command := range d.stage.Commands {
		if argument, ok := command.(*instructions.ArgCommand); ok {
			inherit(argument, beforeFrom)
		}
		if err = b.apply(command); err != nil {
			return nil, d.at(command.Location(), err)
		}
	}

	if file, err = b.image.ConfigFile(); err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Config, file.Created = b.config, v1.Time{Time: epoch}
	return mutate.ConfigFile(b.image, file)
}

// pull gets the image that FROM names, into the store. It is for this machine's architecture, as what those build who
// run programs for it.
func pull(ctx context.Context, pulled store, from string) (v1.Image, error) {
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if from == "scratch" {
		image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		return mutate.ConfigFile(image, &v1.ConfigFile{
			OS: platform.OS, Architecture: platform.Architecture, Config: v1.Config{Env: []string{defaultPath}}, RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		})
	}
	reference, err := name.ParseReference(from)
	if err != nil {
		return nil, fmt.Errorf("FROM %q is no image: give its name, by a build argument if that is missing", from)
	}
	image, err := crane.Pull(reference.Name(), crane.WithContext(ctx), crane.WithPlatform(&platform))
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", reference, err)
	}
	if err := pulled.save(reference, image); err != nil {
		return nil, err
	}
	return pulled.load(reference)
}

func (b *builder) apply(command instructions.Command) error {
	if expandable, ok := command.(instructions.SupportsSingleWordExpansion); ok {
		if err := expandable.Expand(b.expand); err != nil {
			return err
		}
	}
	switch c := command.(type) {
	case *instructions.ArgCommand:
		return b.declare(c)
	case *instructions.CmdCommand:
		b.config.Cmd, b.cmdSet = commandLine(c.ShellDependantCmdLine), true
	case *instructions.CopyCommand:
		return b.copy(c)
	case *instructions.EntrypointCommand:
		b.config.Entrypoint = commandLine(c.ShellDependantCmdLine)
		if !b.cmdSet { // those of the image below aren't meant for this program
			b.config.Cmd = nil
		}
	case *instructions.LabelCommand:
		if b.config.Labels == nil {
			b.config.Labels = map[string]string{}
		}
		for _, label := range c.Labels {
			b.config.Labels[label.Key] = label.Value
		}
	case *instructions.UserCommand:
		b.config.User = c.User
	}
	return nil
}

// declare gives arguments their values: that of the command line, or the default.
func (b *builder) declare(c *instructions.ArgCommand) error {
	for _, argument := range c.Args {
		if value, ok := b.given[argument.Key]; ok {
			b.arguments[argument.Key] = value
		} else if argument.Value != nil {
			value, err := b.expand(*argument.Value)
			if err != nil {
				return err
			}
			b.arguments[argument.Key] = value
		}
	}
	return nil
}

// inherit lets an argument that is declared again after FROM keep the value that it had before.
func inherit(c *instructions.ArgCommand, values map[string]string) {
	for i, argument := range c.Args {
		if value, ok := values[argument.Key]; ok && argument.Value == nil {
			c.Args[i].Value = &value
		}
	}
}

func (b *builder) expand(word string) (string, error) {
	var variables []string
	for _, key := range slices.Sorted(maps.Keys(b.arguments)) {
		variables = append(variables, key+"="+b.arguments[key])
	}
	expanded, _, err := b.lex.ProcessWord(word, shell.EnvsFromSlice(append(variables, b.config.Env...)))
	return expanded, err
}

func commandLine(c instructions.ShellDependantCmdLine) []string {
	if c.PrependShell {
		return append([]string{"/bin/sh", "-c"}, c.CmdLine...)
	}
	return c.CmdLine
}

// absolute is what a path of the Dockerfile means in the image.
func (b *builder) absolute(relative string) string {
	if path.IsAbs(relative) {
		return path.Clean(relative)
	}
	return path.Join("/", b.config.WorkingDir, relative)
}
