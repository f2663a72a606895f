// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Command kube-rbac-proxy is a stand-in, for tests only. It takes the place of the sidecar of
// config/default/manager_auth_proxy_patch.yaml, whose image, ose-kube-rbac-proxy-rhel9, can't be pulled without a login.
//
// It takes the flags that the sidecar is given there, refuses all others, and answers with the same status codes: 404
// for a path that isn't allowed, 401 for who can't be authenticated, 403 for who may not, and else what the upstream
// says. The API server decides, asked by a TokenReview and a SubjectAccessReview.
//
// It is stricter than the original in two things. It has no exception for the platform's Prometheus, which the original
// lets in without asking. And it requires a certificate, where the original would make one for itself.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	given, err := parse(args)
	if err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	p, err := newProxy(given, config)
	if err != nil {
		return err
	}
	return p.serve(ctx)
}
