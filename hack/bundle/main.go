// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Bundle is behind `make bundle`: it writes bundle/ and bundle.Dockerfile from the manifests in config/.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/example-inc/memcached-operator/internal/bundle"
)

func main() {
	request := bundle.Request{Images: map[string]string{}}
	flag.StringVar(&request.Config, "config", "config", "the folder of the manifests")
	root := flag.String("root", ".", "the folder to write bundle/ and bundle.Dockerfile to")
	flag.StringVar(&request.Version, "version", "", "the version of the operator")
	flag.StringVar(&request.PreviousVersion, "previous-version", "", "the version that it replaces; none for the first")
	channels := flag.String("channels", "", "the channels, comma-separated")
	flag.StringVar(&request.DefaultChannel, "default-channel", "", "the default one of them")
	pin := flag.Bool("use-image-digests", false, "name images by the digests that their registries tell")
	flag.Func("image", "`name=reference` to use in place of what config/images/images.env gives; may be repeated", func(text string) error {
		name, reference, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("give name=reference")
		}
		request.Images[name] = reference
		return nil
	})
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bundle: argument %q is not a flag: see --help\n", flag.Arg(0))
		os.Exit(2)
	}
	request.Channels = strings.Split(*channels, ",")
	if *pin {
		request.Digest = bundle.Digest
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := write(ctx, request, *root)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, request bundle.Request, root string) error {
	files, err := bundle.Build(ctx, request)
	if err != nil {
		return err
	}
	return files.Write(root)
}
