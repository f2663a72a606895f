// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// service gives clients one DNS name with the address of each ready pod. It is headless since memcached clients
// choose the pod for a key themselves: a balanced address would send the same key to another pod every time.
func service(mc *cachev1.Memcached) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(mc.Name, mc.Namespace).
		WithLabels(labels(mc.Name)).
		WithOwnerReferences(owner(mc)).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(SelectorLabels(mc.Name)).
			WithPorts(corev1ac.ServicePort().
				WithName(portName).
				WithProtocol(corev1.ProtocolTCP).
				WithPort(Port).
				WithTargetPort(intstr.FromString(portName))))
}
