// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux && cluster

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Covers the end of a node whose network namespace the kernel is just ending: the link is there when it is looked for, and
// gone when it is deleted. Here another deletion comes in between.
func TestUnlinkNodeCopesWithALinkThatGoesMeanwhile(t *testing.T) {
	mustRun(t, "down")
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	deletesTwice := fmt.Sprintf("#!/bin/sh\n%[1]s \"$@\" && exec %[1]s \"$@\"\n", ip)
	if err := os.WriteFile(filepath.Join(folder, "ip"), []byte(deletesTwice), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "ip link add "+hostLink+" type veth"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))

	if err := unlinkNode(t.Context()); err != nil {
		t.Error(err)
	}
	if linked() {
		t.Errorf("%s is still there", hostLink)
	}
}
