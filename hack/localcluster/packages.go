// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"strings"

	"github.com/example-inc/memcached-operator/hack/debian"
)

// requirements are what the node uses of the machine.
var requirements = []debian.Requirement{
	{Package: "busybox-static", AnyOf: []string{"/bin/busybox"}}, // for images of hack/olm, which need a few shell tools
	{Package: "containernetworking-plugins", AnyOf: []string{"/usr/lib/cni/ptp", "/opt/cni/bin/ptp"}},
	{Package: "iproute2", AnyOf: []string{"ip"}},
	{Package: "iptables", AnyOf: []string{"iptables"}},
	{Package: "memcached", AnyOf: []string{"memcached"}},
	{Package: "mount", AnyOf: []string{"mount"}},
	{Package: "runc", AnyOf: []string{"runc"}},
}

func installPackages(ctx context.Context) error {
	missing := debian.Missing(requirements)
	if len(missing) == 0 {
		return nil
	}
	progress("Installing %s", strings.Join(missing, ", "))
	return debian.Install(ctx, missing)
}
