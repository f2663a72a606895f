// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// up makes sure that a healthy cluster runs. It says whether it had to start one.
func up(ctx context.Context, bin string) (started bool, err error) {
	err = locked(ctx, func() error {
		started, err = startUnlessHealthy(ctx, bin)
		return err
	})
	return started, err
}

func startUnlessHealthy(ctx context.Context, bin string) (started bool, err error) {
	if _, running, err := findNode(); err != nil {
		return false, err
	} else if running {
		unwell := health(ctx)
		if unwell == nil {
			progress("The local cluster is already running.")
			return false, nil
		}
		progress("The local cluster is not whole, so it is started anew:\n%s", tail([]byte(unwell.Error()), logTailLines))
	}
	begin := time.Now()
	if err := tearDown(ctx); err != nil {
		return false, err
	}
	if err := installPackages(ctx); err != nil {
		return false, err
	}
	if err := requireTools(bin); err != nil {
		return false, err
	}
	if err := startNode(ctx, bin); err != nil {
		// What started it is cancelled, perhaps; the clean-up has to be done all the same.
		cleanUp := context.WithoutCancel(ctx)
		return false, errors.Join(err, keepLogs(bin), tearDown(cleanUp))
	}
	progress("The local cluster is ready after %.1fs.", time.Since(begin).Seconds())
	return true, nil
}

// locked makes commands that start or stop the cluster wait for one another. An abstract socket leaves no file, and the
// kernel releases it with the process.
func locked(ctx context.Context, do func() error) error {
	for waited := false; ; waited = true {
		lock, err := net.Listen("unix", "@"+nodeName)
		if err == nil {
			return errors.Join(do(), lock.Close())
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("taking the lock: %w", err)
		}
		if !waited {
			progress("Another localcluster command is at work; waiting for it.")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for another localcluster command: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func requireTools(bin string) error {
	var missing []string
	for _, tool := range tools {
		if _, err := exec.LookPath(filepath.Join(bin, tool)); err != nil {
			missing = append(missing, tool)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s has no %s: build them with `%s`", bin, strings.Join(missing, ", "), toolsTarget)
	}
	return nil
}

// startNode starts the node in namespaces of its own and returns when all of it is ready.
func startNode(ctx context.Context, bin string) error {
	for _, dir := range []string{logDir, toolDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
	}
	if err := saveSysctls(); err != nil {
		return err
	}
	if err := createCgroups(); err != nil {
		return err
	}

	ready, readyInNode, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making the readiness pipe: %w", err)
	}

	node := exec.Command("/proc/self/exe")
	node.Args = nodeArguments(bin)
	node.Dir = "/"
	// Nothing else of the environment: a proxy, say, is no way to the node's own addresses. containerd looks for its shim,
	// and that for runc, on the path.
	node.Env = []string{"PATH=" + toolDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	node.Stdout, node.Stderr = os.Stderr, os.Stderr
	node.ExtraFiles = []*os.File{readyInNode}
	node.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS,
		// Ctrl-C in the terminal is for the command that started the node.
		Setsid: true,
	}
	linked, err := node.StdinPipe()
	if err != nil {
		return fmt.Errorf("making the node's standard input: %w", err)
	}
	if err = errors.Join(node.Start(), readyInNode.Close()); err != nil {
		return fmt.Errorf("starting the node: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Wait() }()

	if err := linkNode(ctx, node.Process.Pid); err != nil {
		return err
	}
	if err := linked.Close(); err != nil {
		return fmt.Errorf("telling the node that it is linked: %w", err)
	}
	return awaitNode(ctx, ready, ended)
}

// awaitNode returns when the node has said that it is ready or has ended.
func awaitNode(ctx context.Context, ready io.ReadCloser, ended <-chan error) error {
	told := make(chan bool, 1)
	go func() {
		word, err := io.ReadAll(ready)
		told <- errors.Join(err, ready.Close()) == nil && len(word) > 0
	}()
	select {
	case isReady := <-told:
		if isReady {
			return nil
		}
		// It has said why on standard error, which is ours too.
		return fmt.Errorf("the node ended: %w", exitReason(<-ended))
	case <-ctx.Done():
		return fmt.Errorf("starting the node: %w", ctx.Err())
	}
}
