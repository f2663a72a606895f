// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import cachev1 "github.com/example-inc/memcached-operator/api/v1"

const (
	// defaultMinReadySeconds, as in the CRD, lets a new cache warm up a little before the next old one goes.
	defaultMinReadySeconds = 10

	// startSeconds is how long a pod may take to be scheduled and to serve, before it has to stay so for minReadySeconds.
	startSeconds = 300
	// leastProgressDeadline is Kubernetes' own default.
	leastProgressDeadline = 600
)

func minReadySeconds(mc *cachev1.Memcached) int32 {
	if mc.Spec.MinReadySeconds == nil {
		return defaultMinReadySeconds
	}
	return *mc.Spec.MinReadySeconds
}

// progressDeadlineSeconds leave time for each pod to come up: Kubernetes counts no progress while it becomes available.
func progressDeadlineSeconds(mc *cachev1.Memcached) int32 {
	return max(leastProgressDeadline, minReadySeconds(mc)+startSeconds)
}
