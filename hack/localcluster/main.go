// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

// Command localcluster runs a real one-node Kubernetes cluster on this machine:
// what `make run` and `make e2e` use when KUBECONFIG names no other.
//
// The node lives in namespaces of its own, of processes, mounts, network and
// host name, much as kind's nodes do, but without Docker. So one signal ends all
// that it started, and its mounts, interfaces and firewall rules go with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const usage = `Usage: localcluster [--bin DIR] COMMAND

  up                     start the cluster and leave it running
  down                   stop it; nothing is left behind
  with -- COMMAND …      run COMMAND against the cluster; one that had to be started is stopped afterwards
  push IMAGE=BINARY …    make an image of a static binary and push it under its upstream name
  status                 say what runs and what doesn't

COMMAND gets KUBECONFIG, LOCALCLUSTER_REGISTRY (push as $LOCALCLUSTER_REGISTRY/HOST/NAME what pods pull as HOST/NAME),
LOCALCLUSTER_CA (a file, with the certificate of the authority that the registry is trusted by) and
LOCALCLUSTER_AUDIT_LOG (a file).

`

func main() {
	os.Exit(command())
}

func command() int {
	flags := flag.NewFlagSet("localcluster", flag.ContinueOnError)
	bin := flags.String("bin", "", "the `folder` with Kubernetes, etcd, containerd and CoreDNS (default: where localcluster is)")
	flags.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return 2
	}

	if *bin == "" {
		executable, err := os.Executable()
		if err != nil {
			return report(fmt.Errorf("finding out where localcluster is: %w", err))
		}
		*bin = filepath.Dir(executable)
	}
	folder, err := filepath.Abs(*bin)
	if err != nil {
		return report(err)
	}

	name, args := flags.Arg(0), flags.Args()[1:]
	switch name {
	case "up", "down", "with", "push", "status":
		if os.Geteuid() != 0 {
			return report(errors.New("a local cluster needs root: run this as root, or set KUBECONFIG to a cluster of your own instead"))
		}
	}

	if name == "with" {
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) == 0 {
			flags.Usage()
			return 2
		}
		return with(folder, args)
	}

	ctx, stop := signal.NotifyContext(context.Background(), endSignals...)
	defer stop()
	switch name {
	case "up":
		if _, err := up(ctx, folder); err != nil {
			return report(err)
		}
		fmt.Printf("export KUBECONFIG=%s\n", adminKubeconfig)
		return 0
	case "down":
		return report(down(ctx))
	case "push":
		return report(push(ctx, args))
	case "status":
		return report(status(ctx))
	case nodeCommand:
		return report(runNode(folder))
	case registryCommand:
		return report(serveRegistry())
	default:
		flags.Usage()
		return 2
	}
}

// endSignals end a command, but not before it has cleaned up.
var endSignals = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}

// report prints an error for a person and returns the exit code that goes with it.
func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "localcluster: %v\n", err)
	return 1
}

// progress is for the person who waits. It goes to standard error, so that
// `eval "$(localcluster up)"` sees the export line alone.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
