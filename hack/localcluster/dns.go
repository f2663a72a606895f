// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// createClusterDNS creates CoreDNS as any cluster has it: a Deployment behind a Service.
func createClusterDNS(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", adminKubeconfig)
	if err != nil {
		return fmt.Errorf("reading the administrator's kubeconfig: %w", err)
	}
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	manifest, err := renderConfig(dnsManifest)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading the manifest of CoreDNS: %w", err)
		}
		if err := cluster.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}
