// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import "net/netip"

// One cluster per machine, so that everything about it can be a constant.
const (
	stateDir = "/var/lib/memcached-localcluster"

	// authorityFile is the certificate that all of the cluster's servers are trusted by, the registry among them.
	authorityFile   = pkiDir + "/ca.crt"
	adminKubeconfig = stateDir + "/admin.kubeconfig"
	auditLog        = logDir + "/audit.log"
	configDir       = stateDir + "/config"
	logDir          = stateDir + "/logs"
	pkiDir          = stateDir + "/pki"
	registryDir     = stateDir + "/registry"

	// Where the node sees the folder with the tools.
	toolDir = stateDir + "/bin"

	// In the state folder and not in /run, which is the node's own, so that
	// tools outside the node reach it too.
	containerdSocket = stateDir + "/containerd.sock"

	nodeName   = "memcached-localcluster"
	cgroupName = "memcached-localcluster"
)

// The machine sees one link to the node and one route to all addresses behind it.
const (
	clusterCIDR = "10.83.0.0/16"
	linkBits    = "/30"
	hostLink    = "memcached0"
	hostAddress = "10.83.0.1"
	nodeLink    = "eth0"
	nodeAddress = "10.83.0.2"

	podCIDR           = "10.83.64.0/20"
	serviceCIDR       = "10.83.128.0/20"
	apiServiceAddress = "10.83.128.1"
	dnsAddress        = "10.83.128.10"
	clusterDomain     = "cluster.local"

	apiServerURL    = "https://" + nodeAddress + ":6443"
	registryAddress = nodeAddress + ":5000"
)

// tools are the binaries that the cluster consists of.
var tools = []string{
	"containerd", "containerd-shim-runc-v2", "coredns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy",
	"kube-scheduler", "kubelet", "pause",
}

// toolsTarget builds them.
const toolsTarget = "make cluster-tools"

// servingAddresses and servingNames are what the cluster's servers are called by.
var (
	servingAddresses = []netip.Addr{
		netip.MustParseAddr(nodeAddress), netip.MustParseAddr(apiServiceAddress), netip.MustParseAddr("127.0.0.1"),
	}
	servingNames = []string{
		nodeName, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + clusterDomain,
	}
)
