// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// owner makes an object go when mc goes, also while the operator is away.
func owner(mc *cachev1.Memcached) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(cachev1.GroupVersion.String()).
		WithKind("Memcached").
		WithName(mc.Name).
		WithUID(mc.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}
