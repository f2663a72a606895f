// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Bundle is behind `make bundle`: it writes bundle/ and bundle.Dockerfile from the manifests in config/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/example-inc/memcached-operator/internal/bundle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bundle:", oneLine(err))
		os.Exit(1)
	}
}

// oneLine is what an error says. Some are of others, who quote pages that a registry sent.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

func command(ctx context.Context, args []string) error {
	request := bundle.Request{Images: map[string]string{}}
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned
	flags.StringVar(&request.Config, "config", "config", "the folder of the manifests")
	root := flags.String("root", ".", "the folder to write bundle/ and bundle.Dockerfile to")
	flags.StringVar(&request.Version, "version", "", "the version of the operator")
	flags.StringVar(&request.PreviousVersion, "previous-version", "", "the version that it replaces; none for the first")
	channels := flags.String("channels", "", "the channels, comma-separated")
	flags.StringVar(&request.DefaultChannel, "default-channel", "", "the default one of them")
	flags.BoolFunc("use-image-digests", "name images by the digests that their registries tell", func(text string) error {
		pin, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("USE_IMAGE_DIGESTS is true or false")
		}
		if pin {
			request.Digest = bundle.Digest
		}
		return nil
	})
	flags.Func("image", "`name=reference` to use in place of what config/images/images.env gives; may be repeated", func(text string) error {
		name, reference, found := strings.Cut(text, "=")
		if !found {
			return errors.New("give name=reference")
		}
		request.Images[name] = reference
		return nil
	})
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return err
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q is not a flag: see --help", flags.Arg(0))
	}
	request.Channels = strings.Split(*channels, ",")
	return write(ctx, request, *root)
}

func write(ctx context.Context, request bundle.Request, root string) error {
	files, err := bundle.Build(ctx, request)
	if err != nil {
		return err
	}
	return files.Write(root)
}
