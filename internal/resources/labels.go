// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"maps"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// ManagedByLabel with the value ManagedBy marks all that the operator creates; its cache holds nothing else.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "memcached-operator"
)

// OwnerLabel carries the name of the Memcached that an object or pod belongs to.
const OwnerLabel = "memcached_cr"

// SelectorLabels select the pods of the named Memcached. A Deployment's selector can't be changed once it exists,
// so neither can these.
func SelectorLabels(name string) map[string]string {
	return map[string]string{
		"app":      "memcached",
		OwnerLabel: name,
	}
}

// AnySelector selects the pods of all Memcacheds, in text form.
const AnySelector = "app=memcached," + OwnerLabel

// labels go on every object and pod of the named Memcached. A new value here replaces every pod of every
// Memcached, so nothing that differs from one release to the next belongs here.
func labels(name string) map[string]string {
	all := map[string]string{
		"app.kubernetes.io/name":      "memcached",
		"app.kubernetes.io/instance":  name,
		"app.kubernetes.io/component": "cache",
		ManagedByLabel:                ManagedBy,
	}
	maps.Copy(all, SelectorLabels(name))
	return all
}

// podLabels are the user's, and ours before them.
func podLabels(mc *cachev1.Memcached) map[string]string {
	all := make(map[string]string)
	maps.Copy(all, mc.Spec.PodLabels)
	maps.Copy(all, labels(mc.Name))
	return all
}
