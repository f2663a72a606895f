// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build unix

// Command pause holds a pod's namespaces open and does nothing else: it waits to
// be told to stop, and as process 1 of pods that share a process namespace it
// collects the exit status of processes that lost their parent.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		// One signal can stand for several ended children.
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
