// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httputil"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// proxy is what main starts. Its addresses are bound, so that a test may ask for them.
type proxy struct {
	certificate *certwatcher.CertWatcher
	requests    *manager.Server
	endpoints   *manager.Server // nil: not served
}

func newProxy(given *options, config *rest.Config) (*proxy, error) {
	reviews, err := newReviews(config)
	if err != nil {
		return nil, err
	}
	certificate, err := certwatcher.New(given.certFile, given.keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	given.tls.GetCertificate = certificate.GetCertificate
	p := &proxy{certificate: certificate}

	requests := http.NewServeMux()
	requests.Handle("/", allowPaths(given.allowPaths, reviews.guard(httputil.NewSingleHostReverseProxy(given.upstream))))
	if p.requests, err = listen("requests", given.listenAddress, &given.tls, requests); err != nil {
		return nil, err
	}
	if given.endpointsAddress != "" {
		endpoints := http.NewServeMux()
		endpoints.Handle("/healthz", healthz.CheckHandler{Checker: healthz.Ping})
		if p.endpoints, err = listen("endpoints", given.endpointsAddress, &given.tls, endpoints); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func listen(name, address string, config *tls.Config, handler http.Handler) (*manager.Server, error) {
	listener, err := tls.Listen("tcp", address, config)
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", name, err)
	}
	// Each server gets a copy, since it may change it. It reads there whether to speak HTTP/2.
	server := &http.Server{Handler: handler, TLSConfig: config.Clone()}
	return &manager.Server{Name: name, Server: server, Listener: listener}, nil
}

// serve returns when the context ends, or with the error that ends it.
func (p *proxy) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.certificate.Start(ctx) })
	group.Go(func() error { return p.requests.Start(ctx) })
	if p.endpoints != nil {
		group.Go(func() error { return p.endpoints.Start(ctx) })
	}
	return group.Wait()
}
