// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// tolerations let the scheduler use nodes with taints.
func tolerations(mc *cachev1.Memcached) []*corev1ac.TolerationApplyConfiguration {
	return applied[[]*corev1ac.TolerationApplyConfiguration](mc.Spec.Tolerations)
}

// affinity is nil where none is asked for.
func affinity(mc *cachev1.Memcached) *corev1ac.AffinityApplyConfiguration {
	return applied[*corev1ac.AffinityApplyConfiguration](mc.Spec.Affinity)
}

// spread says how the pods are spread: as the user wants, or else over zones and hosts.
func spread(mc *cachev1.Memcached) []*corev1ac.TopologySpreadConstraintApplyConfiguration {
	if len(mc.Spec.TopologySpreadConstraints) == 0 {
		return []*corev1ac.TopologySpreadConstraintApplyConfiguration{
			spreadOver(corev1.LabelTopologyZone, mc),
			spreadOver(corev1.LabelHostname, mc),
		}
	}
	constraints := applied[[]*corev1ac.TopologySpreadConstraintApplyConfiguration](mc.Spec.TopologySpreadConstraints)
	for _, constraint := range constraints {
		if constraint.LabelSelector == nil { // which would count no pods
			constraint.WithLabelSelector(ownPods(mc))
		}
	}
	return constraints
}

// spreadOver asks the scheduler to spread the pods over zones or hosts where it can, so that the loss of one costs few
// of the contents; it never leaves a pod unscheduled.
func spreadOver(topologyKey string, mc *cachev1.Memcached) *corev1ac.TopologySpreadConstraintApplyConfiguration {
	return corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(topologyKey).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(ownPods(mc))
}

func ownPods(mc *cachev1.Memcached) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(mc.Name))
}

// applied gives a part of a pod's spec the type that it is applied with. The two have the same fields, and client-go has no
// function for it.
func applied[C any](part any) (configuration C) {
	fields, err := json.Marshal(part)
	if err == nil {
		err = json.Unmarshal(fields, &configuration)
	}
	if err != nil {
		panic(fmt.Sprintf("%T isn't what %T is applied with: %v", configuration, part, err))
	}
	return configuration
}
