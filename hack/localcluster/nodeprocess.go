// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// identity tells a process from another that got its id later.
type identity struct {
	pid int
	// In the kernel's ticks since it booted.
	startTime uint64
}

func identify(pid int) (identity, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return identity{}, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	startTime, err := liveSince(string(stat))
	if err != nil {
		return identity{}, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	return identity{pid: pid, startTime: startTime}, nil
}

// errEnded is for a process that is no more than an exit status.
var errEnded = errors.New("it has ended")

// liveSince reads the start time from the content of /proc/PID/stat.
func liveSince(stat string) (uint64, error) {
	// The second field is the command's name in parentheses; there may be spaces and parentheses in it.
	end := strings.LastIndex(stat, ")")
	fields := strings.Fields(stat[end+1:])
	const state, threads, startTime = 0, 17, 19
	if end < 0 || len(fields) <= startTime {
		return 0, fmt.Errorf("not understood: %q", stat)
	}
	// A process whose first thread has ended looks like a zombie, but isn't while it has others: of process 1 of a
	// namespace, it is the last thread that waits until the kernel has ended the namespace's other processes.
	if fields[state] == "X" || fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1") {
		return 0, errEnded
	}
	return strconv.ParseUint(fields[startTime], 10, 64)
}

// alive says whether the process still is the one that was identified.
func (i identity) alive() bool {
	now, err := identify(i.pid)
	return err == nil && now == i
}

// kill ends the process and waits until it has. Of the node, as process 1 of its namespace, that holds for all in it.
func (i identity) kill() error {
	for deadline := time.Now().Add(20 * time.Second); i.alive(); time.Sleep(10 * time.Millisecond) {
		if err := syscall.Kill(i.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending process %d: %w", i.pid, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("ending process %d: it is still there", i.pid)
		}
	}
	return nil
}

// findNode looks for the running node. There is no file to say where it is, so none that is stale or lost.
func findNode() (node identity, running bool, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return identity{}, false, fmt.Errorf("listing processes: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// The process may end at any time between these steps: then it isn't the running node.
		process, err := identify(pid)
		if err != nil {
			continue
		}
		arguments, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil {
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "status"))
		if err != nil {
			continue
		}
		if isNode(string(arguments), string(status)) {
			return process, true, nil
		}
	}
	return identity{}, false, nil
}

// requireNode returns an error unless what is sent to the cluster's addresses gets to a node. Without the link to it, it
// would leave the machine.
func requireNode() error {
	_, running, err := findNode()
	if err != nil {
		return err
	}
	if !running {
		return errors.New("no local cluster runs on this machine")
	}
	if _, err := net.InterfaceByName(hostLink); err != nil {
		return fmt.Errorf("the link to the node is gone: %w", err)
	}
	return nil
}

// nodeArguments are what the node is started with, and found by.
func nodeArguments(bin string) []string {
	return []string{"localcluster", "--bin", bin, nodeCommand}
}

// isNode says whether the content of a process's cmdline and status files is that of process 1 of a node.
func isNode(cmdline, status string) bool {
	arguments := strings.Split(strings.TrimSuffix(cmdline, "\x00"), "\x00")
	if len(arguments) != 4 || !slices.Equal(arguments, nodeArguments(arguments[2])) {
		return false
	}
	for line := range strings.Lines(status) {
		// Its id in each namespace, from ours inwards.
		if ids, found := strings.CutPrefix(line, "NSpid:"); found {
			fields := strings.Fields(ids)
			return len(fields) > 1 && fields[len(fields)-1] == "1"
		}
	}
	return false
}
