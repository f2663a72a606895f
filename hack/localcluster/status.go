// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
)

// status is the command. It fails when something doesn't work.
func status(ctx context.Context) error {
	if err := requireNode(); err != nil {
		return err
	}
	whole := true
	for _, part := range allComponents() {
		if err := part.ready(ctx); err != nil {
			whole = false
			fmt.Printf("%-24s %v\n", part.name, err)
			continue
		}
		fmt.Printf("%-24s ready\n", part.name)
	}
	fmt.Printf("\nregistry   %s\naudit log  %s\nlogs       %s\n\nexport KUBECONFIG=%s\n", registryAddress, auditLog, logDir, adminKubeconfig)
	if !whole {
		return errors.New("the cluster is not whole; `localcluster up` starts it anew")
	}
	return nil
}
