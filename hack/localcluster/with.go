// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// with runs a command against the cluster and returns the command's exit code. A cluster that had to be started for it
// is stopped afterwards.
func with(bin string, command []string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endSignals...)
	defer signal.Stop(signals)

	started, err := upUnlessSignalled(bin, signals)
	if err != nil {
		return report(err)
	}
	code, err := runIn(command, signals)
	if err != nil {
		code = report(err)
	}
	if !started {
		return code
	}
	if code != 0 {
		if err := keepLogs(bin); err != nil {
			report(err)
		}
	}
	if err := down(context.Background()); err != nil {
		return max(code, report(err))
	}
	return code
}

func upUnlessSignalled(bin string, signals <-chan os.Signal) (started bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-done:
		}
	}()
	return up(ctx, bin)
}

// runIn runs a command in this process's group, so that it gets the terminal's Ctrl-C itself. How it ends is up to it.
func runIn(command []string, signals <-chan os.Signal) (code int, err error) {
	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(),
		"KUBECONFIG="+adminKubeconfig,
		"LOCALCLUSTER_AUDIT_LOG="+auditLog,
		"LOCALCLUSTER_REGISTRY="+registryAddress,
		"LOCALCLUSTER_CA="+authorityFile,
		// No proxy is a way to the cluster.
		"NO_PROXY="+strings.Trim(os.Getenv("NO_PROXY")+","+clusterCIDR, ","),
	)
	if err := child.Start(); err != nil {
		return 0, fmt.Errorf("starting the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case received := <-signals:
			// What a terminal sends went to the child as well. SIGTERM mostly comes to this process alone.
			if received == syscall.SIGTERM {
				if err := child.Process.Signal(received); err != nil && !errors.Is(err, os.ErrProcessDone) {
					return 0, fmt.Errorf("passing on %s: %w", received, err)
				}
			}
		case err := <-ended:
			if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
				return 0, fmt.Errorf("running the command: %w", err)
			}
			return exitCode(child.ProcessState), nil
		}
	}
}

// exitCode is what a shell would say.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
