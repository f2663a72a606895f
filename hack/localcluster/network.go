// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// linkNode connects the machine with a node in a network namespace of its own. Nothing is forwarded to or from other
// networks, so the machine's firewall and sysctls stay as they are, and no packet of a test leaves the machine.
func linkNode(ctx context.Context, node int) error {
	if err := requireFreeAddresses(); err != nil {
		return err
	}
	return run(ctx,
		"ip link add "+hostLink+" type veth peer name "+nodeLink+" netns "+strconv.Itoa(node),
		"ip address add "+hostAddress+linkBits+" dev "+hostLink,
		"ip link set "+hostLink+" up",
		"ip route add "+clusterCIDR+" via "+nodeAddress,
	)
}

// requireFreeAddresses prevents that the cluster hides something that the machine talks to.
func requireFreeAddresses() error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("listing the machine's addresses: %w", err)
	}
	for _, address := range addresses {
		if overlaps(address.String(), clusterCIDR) {
			return fmt.Errorf("the machine has the address %s, but the local cluster needs all of %s", address, clusterCIDR)
		}
	}
	return nil
}

func overlaps(one, other string) bool {
	a, errA := netip.ParsePrefix(one)
	b, errB := netip.ParsePrefix(other)
	return errA == nil && errB == nil && a.Overlaps(b)
}

func unlinkNode(ctx context.Context) error {
	if !linked() {
		return nil // it went with the node's end of it, as it mostly does
	}
	if err := run(ctx, "ip link delete "+hostLink); err != nil && linked() {
		return err
	}
	return nil // or it went just now: the kernel takes its time to end a network namespace
}

func linked() bool {
	_, err := net.InterfaceByName(hostLink)
	return err == nil
}

// configureNodeNetwork runs in the node. It gets no default route: what is not of the cluster is unreachable, at once.
func configureNodeNetwork() error {
	if err := run(context.Background(),
		"ip link set lo up",
		"ip address add "+nodeAddress+linkBits+" dev "+nodeLink,
		"ip link set "+nodeLink+" up",
		// A route must be found before kube-proxy's rules replace the address. What still has a Service's address after
		// that is for a Service that kube-proxy doesn't know, or not yet: refused, so that the client can try again.
		"ip route add "+serviceCIDR+" dev "+nodeLink,
		"iptables --append FORWARD --destination "+serviceCIDR+" --jump REJECT",
		"iptables --append OUTPUT --destination "+serviceCIDR+" --jump REJECT",
	); err != nil {
		return err
	}
	for _, setting := range []struct{ name, value string }{
		{"net/ipv4/ip_forward", "1"},
		// The kernel sends one message in a second to the same address: it must be the refusal and not a redirect.
		{"net/ipv4/conf/all/send_redirects", "0"},
		{"net/ipv4/conf/" + nodeLink + "/send_redirects", "0"},
	} {
		if err := os.WriteFile(sysctlPath(setting.name), []byte(setting.value), 0); err != nil {
			return fmt.Errorf("making a router of the node: %w", err)
		}
	}
	return nil
}

func run(ctx context.Context, commands ...string) error {
	for _, command := range commands {
		words := strings.Fields(command)
		output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("running %s: %w: %s", command, err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}
