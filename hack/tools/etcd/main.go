// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Command etcd is etcd's own server. It exists because etcd's main package has
// an import path that `go install` would make a binary called "server" of.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
