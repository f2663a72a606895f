// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"fmt"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

const (
	// Port is the TCP port that memcached listens on.
	Port = 11211

	containerName = "memcached"
	portName      = "memcached"
)

// Endpoint is the host and port under which clients in the cluster find every ready pod of mc.
func Endpoint(mc *cachev1.Memcached) string {
	return fmt.Sprintf("%s.%s.svc:%d", mc.Name, mc.Namespace, Port)
}
