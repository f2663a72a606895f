// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Command coredns is CoreDNS with the plugins that the local cluster's Corefile
// names and no others: the full set would pull in the SDKs of three clouds.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	coremain.Run()
}
