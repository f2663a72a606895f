// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// dockerfile is a Dockerfile of one stage, with no more than what bundles and catalogs need.
type dockerfile struct {
	path string
	// arguments are those before FROM.
	arguments []instructions.ArgCommand
	stage     instructions.Stage
	lex       *shell.Lex
}

// readDockerfile refuses what this tool can't build, before anything is fetched or written.
func readDockerfile(path string) (*dockerfile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the Dockerfile: %w", err)
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	stages, arguments, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(stages) == 0 {
		return nil, fmt.Errorf("%s: there is no FROM: add one, FROM scratch at least", path)
	}

	d := &dockerfile{path: path, arguments: arguments, stage: stages[0], lex: shell.NewLex(parsed.EscapeToken)}
	for _, command := range d.stage.Commands {
		if !supported(command) {
			return nil, d.refusal(command.Location(), fmt.Sprint(command))
		}
	}
	if len(stages) > 1 {
		return nil, d.refusal(stages[1].Location, stages[1].SourceCode)
	}
	if d.stage.Platform != "" {
		return nil, d.refusal(d.stage.Location, d.stage.SourceCode)
	}
	return d, nil
}

func supported(command instructions.Command) bool {
	switch c := command.(type) {
	case *instructions.ArgCommand, *instructions.CmdCommand, *instructions.EntrypointCommand, *instructions.LabelCommand, *instructions.UserCommand:
		return true
	case *instructions.CopyCommand:
		hasFlag := c.From != "" || c.Chown != "" || c.Chmod != "" || c.Link || c.Parents || len(c.ExcludePatterns) > 0
		return !hasFlag && len(c.SourceContents) == 0
	}
	return false
}

// at says where an error is.
func (d *dockerfile) at(location []parser.Range, err error) error {
	return fmt.Errorf("%s:%d: %w", d.path, location[0].Start.Line, err)
}

func (d *dockerfile) refusal(location []parser.Range, code string) error {
	return d.at(location, fmt.Errorf("%s: this tool only copies files and labels them: have podman, docker or buildah build it, "+
		"and name that in CONTAINER_TOOL", code))
}
