// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build !linux

// Command localcluster runs a one-node Kubernetes cluster, on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "localcluster: a local cluster needs Linux: set KUBECONFIG to a cluster of your own instead.")
	os.Exit(1)
}
