// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nodeCommand is what `up` starts in new namespaces: process 1 of the node.
const nodeCommand = "node"

const (
	// On two cores that compile at the same time, the API server needs half a minute.
	readyTimeout = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	logTailLines = 15
)

// readinessDescriptor is the pipe on which the node tells `up` that all is ready. It is closed without a word when the
// node ends before that.
const readinessDescriptor = 3

// runNode brings up the node and then stays as its process 1. Whatever ends it, the kernel ends all other processes of
// the node with it.
func runNode(bin string) error {
	readiness := os.NewFile(readinessDescriptor, "readiness")
	syscall.CloseOnExec(readinessDescriptor)

	// `up` closes standard input when it has made the network link.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("waiting for the network link: %w", err)
	}
	if err := isolateMounts(bin); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(nodeName)); err != nil {
		return fmt.Errorf("setting the node's host name: %w", err)
	}
	if err := configureNodeNetwork(); err != nil {
		return err
	}
	if err := boot(context.Background()); err != nil {
		return err
	}

	if _, err := readiness.WriteString("ready"); err != nil {
		return fmt.Errorf("telling that the node is ready: %w", err)
	}
	if err := detach(); err != nil {
		return err
	}
	if err := readiness.Close(); err != nil {
		return fmt.Errorf("closing the readiness pipe: %w", err)
	}
	reapOrphans()
	return nil
}

// isolateMounts gives the node a mount tree of its own. The folders in which containerd, the kubelet and the CNI plugins
// leave things at fixed paths are empty and vanish with the node; the state folder is the one way out.
func isolateMounts(bin string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detaching the node's mounts from the machine's: %w", err)
	}
	// A path below the state folder, since the tools may be in one of the folders that are about to be covered.
	if err := unix.Mount(bin, toolDir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the tools: %w", err)
	}
	state, err := os.Open(stateDir)
	if err != nil {
		return fmt.Errorf("opening the state folder: %w", err)
	}
	for _, dir := range []string{"/run", "/var/lib", "/var/log"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("covering %s: %w", dir, err)
		}
	}
	if err := os.Mkdir(stateDir, 0o755); err != nil {
		return fmt.Errorf("making the state folder's mount point: %w", err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", state.Fd()), stateDir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting the state folder: %w", err)
	}
	if err := state.Close(); err != nil {
		return fmt.Errorf("closing the state folder: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	// Volumes with mount propagation need a shared tree.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the node's mounts with its pods: %w", err)
	}
	return nil
}

// boot starts everything in the order of what needs what.
func boot(ctx context.Context) error {
	if err := writeCredentials(); err != nil {
		return err
	}
	if err := writeConfig(); err != nil {
		return err
	}

	if err := startThen(ctx, nothing, infrastructure...); err != nil {
		return err
	}
	// The API server takes its seconds, so the images are made in the meantime.
	if err := startThen(ctx, pushOwnImages, apiServer); err != nil {
		return err
	}
	if err := startThen(ctx, createClusterDNS, apiClients...); err != nil {
		return err
	}
	return (&process{component: clusterDNS, started: time.Now()}).await(ctx)
}

// process is a component that was started.
type process struct {
	component
	started time.Time
	// exited gets the outcome when the process ends; nil where there is no process.
	exited chan error
}

// startThen starts components, does something else while they come up, and waits until all of them are ready.
func startThen(ctx context.Context, meanwhile func(context.Context) error, components ...component) error {
	var processes []*process
	for _, component := range components {
		process, err := start(component)
		if err != nil {
			return err
		}
		processes = append(processes, process)
	}
	if err := meanwhile(ctx); err != nil {
		return err
	}
	for _, process := range processes {
		if err := process.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

func nothing(context.Context) error { return nil }

func start(c component) (*process, error) {
	log, err := os.Create(logFile(c.name))
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", c.name, err)
	}
	command := exec.Command(filepath.Join(toolDir, c.name), c.args...)
	if c.name == registryCommand {
		command = exec.Command("/proc/self/exe", registryCommand)
	}
	command.Args[0] = c.name
	command.Stdout, command.Stderr = log, log
	if err := errors.Join(command.Start(), log.Close()); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	p := &process{component: c, started: time.Now(), exited: make(chan error, 1)}
	go func() { p.exited <- command.Wait() }()
	return p, nil
}

func (p *process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		// The component's own reason is worth more than that time ran out.
		err := p.ready(ctx)
		if err == nil {
			progress("%-24s ready %5.1fs", p.name, time.Since(p.started).Seconds())
			return nil
		}
		select {
		case exit := <-p.exited:
			return p.failure(fmt.Errorf("it ended: %w", exitReason(exit)))
		case <-ctx.Done():
			return p.failure(fmt.Errorf("not ready after %s: %w", readyTimeout, err))
		case <-time.After(pollInterval):
		}
	}
}

func exitReason(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// failure is what a person needs to see: which component, why, and its last words.
func (p *process) failure(reason error) error {
	content, err := os.ReadFile(logFile(p.name))
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, reason)
	}
	return fmt.Errorf("%s: %w\nThe end of its log:\n%s", p.name, reason, tail(content, logTailLines))
}

func logFile(component string) string {
	return filepath.Join(logDir, component+".log")
}

// tail returns the last lines of a log, indented.
func tail(content []byte, lines int) string {
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "    " + strings.Join(all, "\n    ")
}

// detach lets go of the terminal, or pipe, of the `up` that started the node.
func detach() error {
	log, err := os.Create(logFile(nodeCommand))
	if err != nil {
		return fmt.Errorf("opening the node's own log: %w", err)
	}
	if err := errors.Join(unix.Dup3(int(log.Fd()), 1, 0), unix.Dup3(int(log.Fd()), 2, 0), log.Close()); err != nil {
		return fmt.Errorf("detaching from the terminal: %w", err)
	}
	return nil
}

// reapOrphans collects, for good, the exit status of every process of the node that has lost its parent: the shims, and
// what they leave. A component that ends isn't started again: the next `up` starts the whole node anew.
func reapOrphans() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		// One signal can stand for several ended children.
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
