// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build cluster

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the README promises of `make run`: from nothing to caches that answer, told so that a person can follow, and with
// Ctrl-C back to nothing. It uses the machine's one local cluster, so none may run.
func TestMakeRunShowsTheMainJob(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("make", "run")
	command.Dir = root
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "KUBECONFIG=") })
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does, so that Ctrl-C goes to all of it
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err = command.Start(); err != nil {
		t.Fatal(err)
	}
	ctrlC := func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGINT) } // it may have ended already
	giveUp := time.AfterFunc(10*time.Minute, ctrlC)
	defer giveUp.Stop()

	var told strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		told.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "Ctrl-C ends it") {
			ctrlC()
		}
	}
	_ = command.Wait() // make says how the interrupted target ended, which is of no interest here
	t.Log(told.String())

	for _, order := range [][]string{{
		"The local cluster is ready",
		"memcached-sample serverside-applied",
		"Deployment default/memcached-sample created",
		"READY 3/3  default/memcached-sample",
		":11211",
		"stored a key in each of the 3 and read it back",
		"talk to it:",
		"scale it:",
		"all is ready; Ctrl-C ends it",
		"the operator has stopped",
		"Nothing of a local cluster is left",
	}, {
		"Deployment default/memcached-follow created",
		"READY 1/1  default/memcached-follow",
		"all is ready",
	}} {
		rest := told.String()
		for _, part := range order {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%q wasn't told, or not in its turn", part)
				continue
			}
			rest = after
		}
	}
}
