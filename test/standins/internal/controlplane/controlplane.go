// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package controlplane gives the tests of the stand-ins a cluster without nodes.
package controlplane

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Cluster is a real kube-apiserver and etcd, and nothing else. The client is an administrator's, and refuses fields that
// the API doesn't know.
type Cluster struct {
	client.Client
	Config *rest.Config
}

// Start starts one for a test, which ends it.
func Start(t *testing.T) *Cluster {
	t.Helper()
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatal("starting etcd and kube-apiserver (make test builds them):", err)
	}
	t.Cleanup(func() {
		if stopErr := environment.Stop(); stopErr != nil {
			t.Error("stopping etcd and kube-apiserver:", stopErr)
		}
	})
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{Client: client.WithFieldValidation(c, "Strict"), Config: config}
}
