// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20

	// leastOverhead is what memcached needs beside its items, however few they are: a first page of each slab class, the
	// hash table, and the buffers of its threads and of as many connections as are the default. A quarter of a large cache
	// does, for the hash table of small items.
	leastOverhead = 96 * mebibyte
	// connectionOverhead is the read buffer of each further connection.
	connectionOverhead = 16 * kibibyte
)

// containerResources request as much memory as they allow, so that a cache that fills up is never in the way of
// its neighbours. The CPU is not limited: throttling would show as latency while the node idles.
// What the user sets takes the place of what is derived, resource by resource.
func containerResources(mc *cachev1.Memcached) *corev1ac.ResourceRequirementsApplyConfiguration {
	users := mc.Spec.Resources
	limits := corev1.ResourceList{corev1.ResourceMemory: podMemory(mc)}
	maps.Copy(limits, users.Limits)

	requests := corev1.ResourceList{corev1.ResourceMemory: limits[corev1.ResourceMemory]}
	if _, limited := users.Limits[corev1.ResourceCPU]; !limited { // a limit is the request too, unless that is set
		requests[corev1.ResourceCPU] = resource.MustParse("50m")
	}
	maps.Copy(requests, users.Requests)
	return corev1ac.ResourceRequirements().WithRequests(requests).WithLimits(limits)
}

// podMemory is what a pod needs for its items, and beside them.
func podMemory(mc *cachev1.Memcached) resource.Quantity {
	items := itemMemory(mc)
	overhead := max(leastOverhead, items/4)
	connections := connectionOverhead * max(0, int64(maxConnections(mc))-defaultMaxConnections)
	return *resource.NewQuantity(items+overhead+connections, resource.BinarySI)
}
