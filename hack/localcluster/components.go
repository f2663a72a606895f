// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// component is a long-running part of the node: a process with a log file of the same name.
type component struct {
	name string
	args []string
	// ready returns nil once the component does its work. It can be asked from inside the node and from the machine.
	ready func(context.Context) error
}

// infrastructure depends on nothing else.
var infrastructure = []component{
	{
		name:  registryCommand,
		ready: answers("https://" + registryAddress + "/v2/"),
	},
	{
		name:  "containerd",
		args:  []string{"--config=" + configDir + "/containerd.toml"},
		ready: listens("unix", containerdSocket),
	},
	{
		name: "etcd",
		args: []string{
			"--data-dir=" + stateDir + "/etcd",
			// Of loopback, which is the node's own: nothing but the API server gets there.
			"--listen-client-urls=http://127.0.0.1:2379",
			"--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--initial-advertise-peer-urls=http://127.0.0.1:2380",
			"--initial-cluster=default=http://127.0.0.1:2380",
			"--listen-metrics-urls=http://" + nodeAddress + ":2381",
			// The data doesn't outlive the machine's next boot, so it needn't survive one.
			"--unsafe-no-fsync",
		},
		ready: answers("http://" + nodeAddress + ":2381/readyz"),
	},
}

var apiServer = component{
	name: "kube-apiserver",
	args: []string{
		"--advertise-address=" + nodeAddress,
		"--allow-privileged",
		"--audit-log-maxsize=4096",
		"--audit-log-path=" + auditLog,
		"--audit-policy-file=" + configDir + "/audit-policy.yaml",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file=" + authorityFile,
		// OwnerReferencesPermissionEnforcement is on in OpenShift, so the operator has to live with it.
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--etcd-servers=http://127.0.0.1:2379",
		"--kubelet-certificate-authority=" + authorityFile,
		"--kubelet-client-certificate=" + pkiDir + "/kubelet-client.crt",
		"--kubelet-client-key=" + pkiDir + "/kubelet-client.key",
		"--kubelet-preferred-address-types=InternalIP",
		"--proxy-client-cert-file=" + pkiDir + "/front-proxy.crt",
		"--proxy-client-key-file=" + pkiDir + "/front-proxy.key",
		// The authority is that of all clients, so the name tells which one may speak for others.
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-client-ca-file=" + authorityFile,
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
		"--service-account-key-file=" + pkiDir + "/service-accounts.key",
		"--service-account-signing-key-file=" + pkiDir + "/service-accounts.key",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + pkiDir + "/serving.crt",
		"--tls-private-key-file=" + pkiDir + "/serving.key",
	},
	ready: answers(apiServerURL + "/readyz"),
}

// apiClients work once the API server does. Of those that elect a leader there is one, which needn't wait for a lease.
var apiClients = []component{
	{
		name: "kube-controller-manager",
		args: []string{
			"--authentication-kubeconfig=" + kubeconfigOf("kube-controller-manager"),
			"--authorization-kubeconfig=" + kubeconfigOf("kube-controller-manager"),
			"--bind-address=" + nodeAddress,
			"--cluster-signing-cert-file=" + authorityFile,
			"--cluster-signing-key-file=" + pkiDir + "/ca.key",
			// Its many controllers begin with a request for a token each; the default would make them queue for seconds.
			"--kube-api-burst=400",
			"--kube-api-qps=200",
			"--kubeconfig=" + kubeconfigOf("kube-controller-manager"),
			"--leader-elect=false",
			"--root-ca-file=" + authorityFile,
			"--service-account-private-key-file=" + pkiDir + "/service-accounts.key",
			"--tls-cert-file=" + pkiDir + "/serving.crt",
			"--tls-private-key-file=" + pkiDir + "/serving.key",
			"--use-service-account-credentials",
		},
		ready: answers("https://" + nodeAddress + ":10257/healthz"),
	},
	{
		name: "kube-scheduler",
		args: []string{
			"--authentication-kubeconfig=" + kubeconfigOf("kube-scheduler"),
			"--authorization-kubeconfig=" + kubeconfigOf("kube-scheduler"),
			"--bind-address=" + nodeAddress,
			"--kubeconfig=" + kubeconfigOf("kube-scheduler"),
			"--leader-elect=false",
			"--tls-cert-file=" + pkiDir + "/serving.crt",
			"--tls-private-key-file=" + pkiDir + "/serving.key",
		},
		ready: answers("https://" + nodeAddress + ":10259/healthz"),
	},
	{
		name: "kubelet",
		args: []string{
			"--config=" + configDir + "/kubelet.yaml",
			"--kubeconfig=" + kubeconfigOf("kubelet"),
			"--node-ip=" + nodeAddress,
			"--root-dir=" + stateDir + "/kubelet",
		},
		ready: answers("http://" + nodeAddress + ":10248/healthz"),
	},
	{
		name:  "kube-proxy",
		args:  []string{"--config=" + configDir + "/kube-proxy.yaml"},
		ready: answers("http://" + nodeAddress + ":10256/healthz"),
	},
}

// answers asks an HTTP server whether it is well.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		transport, err := clusterTransport()
		if err != nil {
			return err
		}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s", url, response.Status)
		}
		return errors.Join(err, response.Body.Close())
	}
}

// clusterTransport trusts the cluster's authority and goes straight to the node, whatever proxy the machine uses.
func clusterTransport() (*http.Transport, error) {
	ca, err := os.ReadFile(authorityFile)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}, nil
}

func listens(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}

// namesResolve asks the cluster's name server for the API server, from wherever it runs: the answer has passed CoreDNS
// in its pod, kube-proxy's rules and the pod network.
func namesResolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resolver := net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 500 * time.Millisecond}).DialContext(ctx, network, net.JoinHostPort(dnsAddress, "53"))
		},
	}
	addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+clusterDomain+".")
	if failed := new(net.DNSError); errors.As(err, &failed) {
		// Not the one of resolv.conf, which it believes to have asked.
		failed.Server = dnsAddress
	}
	if err != nil {
		return err
	}
	if len(addresses) != 1 || addresses[0] != apiServiceAddress {
		return fmt.Errorf("kubernetes.default resolves to %v", addresses)
	}
	return nil
}

// clusterDNS is ready when all else is. It is no process of the node but a Deployment.
var clusterDNS = component{name: "cluster DNS", ready: namesResolve}

func allComponents() []component {
	var all []component
	all = append(all, infrastructure...)
	all = append(all, apiServer)
	all = append(all, apiClients...)
	return append(all, clusterDNS)
}

// health is nil when every part of the cluster works, as seen from the machine.
func health(ctx context.Context) error {
	if err := requireNode(); err != nil {
		return err
	}
	var errs []error
	for _, part := range allComponents() {
		if err := part.ready(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	return errors.Join(errs...)
}
