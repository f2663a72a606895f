// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tailLines is how much of the operator's log is shown when it ends unasked.
const tailLines = 20

// startOperator starts the manager, which ends with the context, and returns a channel that says how it ended.
// Metrics and probes are off: nobody asks for them here, and their ports may be taken.
func startOperator(ctx context.Context, manager, log string) (<-chan error, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("making the operator's log: %w", err)
	}
	image, err := memcachedImage()
	if err != nil {
		return nil, err
	}
	operator := command(ctx, manager, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	operator.Env = append(os.Environ(), "RELATED_IMAGE_MEMCACHED="+image)
	operator.Stdout, operator.Stderr = file, file
	if err = operator.Start(); err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(operator.Wait(), file.Close()) }()
	return ended, nil
}

// command asks the process to end, politely, when the context does. It runs in a process group of its own, so that the
// terminal's Ctrl-C reaches us alone and things end in order.
func command(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// memcachedImage is the default that config/ gives to the operator in its pod.
func memcachedImage() (string, error) {
	path := filepath.Join("config", "images", "images.env")
	contents, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the default memcached image: %w", err)
	}
	for line := range strings.Lines(string(contents)) {
		if image, found := strings.CutPrefix(strings.TrimSpace(line), "memcached="); found {
			return image, nil
		}
	}
	return "", fmt.Errorf("%s has no line memcached=IMAGE", path)
}

// tail is the end of the operator's log.
func tail(log string) string {
	contents, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(contents)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
