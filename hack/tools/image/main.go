// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Command image builds images whose Dockerfiles run nothing, and pushes them. It is for machines without podman and
// docker, and takes the same command lines. An OLM bundle or catalog is no more than some files and labels, and to pack
// those needs no privileges.
//
// What it builds depends on the input alone, unlike with those tools: the same files and labels have the same digest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
)

const usage = `Usage: image build [--file DOCKERFILE] [--build-arg NAME=VALUE]… --tag TAG FOLDER
       image push TAG

build keeps the image beside this program, in images/, where push finds it. A Dockerfile with more than FROM, ARG,
COPY, LABEL, USER, ENTRYPOINT and CMD needs podman, docker or buildah.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		fmt.Println(usage)
		return
	}
	if err != nil {
		// One line, though some errors quote pages that a registry sent.
		fmt.Fprintln(os.Stderr, "image:", strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding out where images are kept: %w", err)
	}
	images := store(filepath.Join(filepath.Dir(executable), "images"))
	if len(args) == 0 {
		return flag.ErrHelp
	}
	switch args[0] {
	case "build":
		return build(ctx, images, args[1:])
	case "push":
		return push(ctx, images, args[1:])
	case "help", "-h", "-help", "--help":
		return flag.ErrHelp
	}
	return fmt.Errorf("command %q: there are only build and push: use podman or docker, and name it in CONTAINER_TOOL", args[0])
}

func build(ctx context.Context, images store, args []string) (err error) {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it all
	file := flags.String("file", "", "")
	tagged := flags.String("tag", "", "")
	arguments := map[string]string{}
	flags.Func("build-arg", "", func(text string) error {
		key, value, found := strings.Cut(text, "=")
		if !found {
			return errors.New("give NAME=VALUE")
		}
		arguments[key] = value
		return nil
	})
	if err = flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("build takes one folder to copy files from, not %q", flags.Args())
	}
	tag, err := parseTag(*tagged)
	if err != nil {
		return err
	}
	folder := flags.Arg(0)
	if *file == "" {
		*file = filepath.Join(folder, "Dockerfile")
	}

	recipe, err := readDockerfile(*file)
	if err != nil {
		return err
	}
	files, err := openFolder(folder)
	if err != nil {
		return err
	}
	// Its own: another build may pull the same image to begin with.
	pulled, err := os.MkdirTemp("", "image-")
	if err != nil {
		return fmt.Errorf("making room for the image that it is based on: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(pulled)) }()
	image, err := recipe.build(ctx, store(pulled), files, arguments)
	if err != nil {
		return err
	}
	if err = images.save(tag, image); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("Built %s@%s\n", tag, digest)
	return nil
}

// push signs in with the credentials of `podman login` or `docker login`. Registries on this machine are spoken to in
// plain HTTP.
func push(ctx context.Context, images store, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("push takes one tag, not %q", args)
	}
	tag, err := parseTag(args[0])
	if err != nil {
		return err
	}
	image, err := images.load(tag)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if err := crane.Push(image, tag.Name(), crane.WithContext(ctx)); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	fmt.Printf("Pushed %s@%s\n", tag, digest)
	return nil
}

func parseTag(text string) (name.Tag, error) {
	tag, err := name.NewTag(text, name.StrictValidation)
	if err != nil {
		return name.Tag{}, fmt.Errorf("tag %q: give one such as quay.io/example-inc/memcached-operator-bundle:v0.1.0", text)
	}
	return tag, nil
}
