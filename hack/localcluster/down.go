// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// down is the command.
func down(ctx context.Context) error {
	return locked(ctx, func() error { return tearDownAloud(ctx) })
}

func tearDownAloud(ctx context.Context) error {
	if _, err := os.Stat(stateDir); errors.Is(err, fs.ErrNotExist) {
		progress("No local cluster was running.")
	}
	begin := time.Now()
	if err := tearDown(ctx); err != nil {
		return err
	}
	progress("Nothing of a local cluster is left (%.1fs).", time.Since(begin).Seconds())
	return nil
}

// tearDown removes whatever there is of a cluster, whole or not. With the node's processes, the kernel removes its
// mounts, interfaces and firewall rules. The state folder goes last: it says what else there is to undo.
func tearDown(ctx context.Context) error {
	node, running, err := findNode()
	if err != nil {
		return err
	}
	if running {
		if err := node.kill(); err != nil {
			return err
		}
	}
	if err := errors.Join(unlinkNode(ctx), removeCgroups(), restoreSysctls()); err != nil {
		return err
	}
	return removeState()
}

func removeState() error {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("listing the mounts: %w", err)
	}
	if mounts := mountsBelow(string(mountinfo), stateDir); len(mounts) > 0 {
		// None is ours: the node's mounts are its own. What they show must not be removed.
		return fmt.Errorf("removing %s: something is mounted there: %s", stateDir, strings.Join(mounts, ", "))
	}
	if err := os.RemoveAll(stateDir); err != nil {
		return fmt.Errorf("removing the state folder: %w", err)
	}
	return nil
}

// mountsBelow finds the mount points in a folder in the content of /proc/self/mountinfo.
func mountsBelow(mountinfo, dir string) []string {
	var mounts []string
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4]+"/", dir+"/") {
			mounts = append(mounts, fields[4])
		}
	}
	return mounts
}

// keepLogs copies the logs to where they outlive the cluster.
func keepLogs(bin string) error {
	if _, err := os.Stat(logDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kept := filepath.Join(bin, "localcluster-logs")
	if err := os.RemoveAll(kept); err != nil {
		return fmt.Errorf("removing older logs: %w", err)
	}
	if err := os.CopyFS(kept, os.DirFS(logDir)); err != nil {
		return fmt.Errorf("keeping the logs: %w", err)
	}
	progress("The logs of the cluster's components are in %s.", kept)
	return nil
}
