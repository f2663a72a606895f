// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	injectAnnotation = prefix + "inject-cabundle"
	bundleKey        = "service-ca.crt"
)

// configMapReconciler fills the ConfigMaps that ask for the authority's certificate.
type configMapReconciler struct {
	client.Client
	authority *authority
}

// Reconcile fills one ConfigMap. As in the original, whatever else it holds goes.
func (r *configMapReconciler) Reconcile(ctx context.Context, configMap *corev1.ConfigMap) (reconcile.Result, error) {
	data := map[string]string{bundleKey: string(r.authority.bundle)}
	if !strings.EqualFold(configMap.Annotations[injectAnnotation], "true") || maps.Equal(configMap.Data, data) {
		return reconcile.Result{}, nil
	}
	configMap.Data = data
	return reconcile.Result{}, r.Update(ctx, configMap)
}
