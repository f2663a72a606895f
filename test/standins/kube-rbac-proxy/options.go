// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// options are what the flags say.
type options struct {
	listenAddress    string
	endpointsAddress string // empty: not served
	upstream         *url.URL
	allowPaths       []string // empty: all
	certFile         string
	keyFile          string
	tls              tls.Config
}

// parse reads the flags. A flag that the manifest starts to use must be added here, and do there what the original does.
func parse(args []string) (*options, error) {
	given := &options{}
	flags := pflag.NewFlagSet("kube-rbac-proxy", pflag.ContinueOnError)
	flags.StringVar(&given.listenAddress, "secure-listen-address", "", "where to serve HTTPS")
	endpointsPort := flags.Int("proxy-endpoints-port", 0, "port of /healthz, on the host of --secure-listen-address; 0 for none")
	upstream := flags.String("upstream", "", "URL that requests are passed on to")
	flags.StringSliceVar(&given.allowPaths, "allow-paths", nil, "patterns of the only paths that there are")
	flags.StringVar(&given.certFile, "tls-cert-file", "", "file with the certificate")
	flags.StringVar(&given.keyFile, "tls-private-key-file", "", "file with its key")
	minVersion := flags.String("tls-min-version", "VersionTLS12", "oldest version of TLS, as crypto/tls calls it")
	cipherSuites := flags.StringSlice("tls-cipher-suites", nil, "cipher suites, as crypto/tls calls them; Go's choice if empty")
	http2Disable := flags.Bool("http2-disable", false, "serve HTTP/1.1 alone")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("kube-rbac-proxy takes flags alone, and was given %q", flags.Args())
	}
	for _, required := range []string{"secure-listen-address", "upstream", "tls-cert-file", "tls-private-key-file"} {
		if flags.Lookup(required).Value.String() == "" {
			return nil, fmt.Errorf("--%s is missing", required)
		}
	}
	for _, pattern := range given.allowPaths {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("--allow-paths: %q: %w", pattern, err)
		}
	}

	host, _, err := net.SplitHostPort(given.listenAddress)
	if err != nil {
		return nil, fmt.Errorf("--secure-listen-address: %w", err)
	}
	if *endpointsPort != 0 {
		given.endpointsAddress = net.JoinHostPort(host, strconv.Itoa(*endpointsPort))
	}
	if given.upstream, err = url.Parse(*upstream); err != nil {
		return nil, fmt.Errorf("--upstream: %w", err)
	}
	if given.tls.MinVersion, err = cliflag.TLSVersion(*minVersion); err != nil {
		return nil, fmt.Errorf("--tls-min-version: %w", err)
	}
	if given.tls.CipherSuites, err = cliflag.TLSCipherSuites(*cipherSuites); err != nil {
		return nil, fmt.Errorf("--tls-cipher-suites: %w", err)
	}
	given.tls.NextProtos = []string{"h2", "http/1.1"}
	if *http2Disable {
		given.tls.NextProtos = []string{"http/1.1"}
	}
	return given, nil
}
