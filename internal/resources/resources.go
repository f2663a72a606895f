// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package resources works out which objects a Memcached needs. It is pure: the same Memcached on the same
// platform always gives the same apply configurations, which hold the fields that we own and no others.
package resources

import (
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
)

// Set is everything that one Memcached owns.
type Set struct {
	Deployment *appsv1ac.DeploymentApplyConfiguration
	Service    *corev1ac.ServiceApplyConfiguration
}

// For returns what mc needs on the platform. keptImage is what KeptImage says.
func For(mc *cachev1.Memcached, on platform.Platform, keptImage string) Set {
	return Set{
		Deployment: deployment(mc, on, image(mc, on, keptImage)),
		Service:    service(mc),
	}
}
