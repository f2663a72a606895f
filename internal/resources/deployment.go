// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
)

// What every cache gets.
const (
	// preStopSeconds keep a pod serving while clients learn that its address is gone from DNS:
	// memcached cuts all connections at SIGTERM.
	preStopSeconds         = 5
	terminationGracePeriod = 30

	// memcachedUID is the user memcache of the official image. Its image names the user, and the kubelet can't
	// tell that a named user isn't root.
	memcachedUID = 11211
)

// deployment runs the caches. A change to anything in its pod template replaces every pod of every
// Memcached when the operator is upgraded, and so empties all caches.
func deployment(mc *cachev1.Memcached, on platform.Platform, image string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(mc.Name, mc.Namespace).
		WithLabels(labels(mc.Name)).
		WithAnnotations(map[string]string{imageAnnotation: image}).
		WithOwnerReferences(owner(mc)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(mc.Spec.Size).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(mc.Name))).
			// A pod that goes takes its share of the contents along, so none goes before its successor serves.
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).
					WithMaxSurge(intstr.FromInt32(1)))).
			WithMinReadySeconds(minReadySeconds(mc)).
			WithProgressDeadlineSeconds(progressDeadlineSeconds(mc)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(podLabels(mc)).
				WithAnnotations(mc.Spec.PodAnnotations).
				WithSpec(podSpec(mc, on, image))))
}

func podSpec(mc *cachev1.Memcached, on platform.Platform, image string) *corev1ac.PodSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithContainers(container(mc, image)).
		WithImagePullSecrets(imagePullSecrets(mc)...).
		WithSecurityContext(podSecurityContext(on)).
		WithNodeSelector(mc.Spec.NodeSelector).
		WithTolerations(tolerations(mc)...).
		WithAffinity(affinity(mc)).
		WithTopologySpreadConstraints(spread(mc)...).
		WithTerminationGracePeriodSeconds(terminationGracePeriod).
		// memcached never talks to the API server, and reads no environment variables.
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false)
	if class := mc.Spec.PriorityClassName; class != "" {
		spec.WithPriorityClassName(class)
	}
	return spec
}

func container(mc *cachev1.Memcached, image string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(containerName).
		WithImage(image).
		WithCommand(command(mc)...).
		WithPorts(corev1ac.ContainerPort().
			WithName(portName).
			WithProtocol(corev1.ProtocolTCP).
			WithContainerPort(Port)).
		WithResources(containerResources(mc)).
		// memcached listens within milliseconds: asking often at first makes a new pod serve seconds earlier.
		WithStartupProbe(connects().
			WithPeriodSeconds(1).
			WithFailureThreshold(60)).
		WithReadinessProbe(connects().
			WithPeriodSeconds(5).
			WithTimeoutSeconds(2)).
		// Lax: a restart loses the contents, which is worse than almost anything it could cure.
		WithLivenessProbe(connects().
			WithPeriodSeconds(30).
			WithTimeoutSeconds(5).
			WithFailureThreshold(10)).
		WithLifecycle(corev1ac.Lifecycle().
			WithPreStop(corev1ac.LifecycleHandler().
				WithSleep(corev1ac.SleepAction().WithSeconds(preStopSeconds)))).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
}

// connects is a probe that asks what a client asks first: whether memcached accepts a connection.
func connects() *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(portName)))
}

func imagePullSecrets(mc *cachev1.Memcached) []*corev1ac.LocalObjectReferenceApplyConfiguration {
	secrets := make([]*corev1ac.LocalObjectReferenceApplyConfiguration, 0, len(mc.Spec.ImagePullSecrets))
	for _, secret := range mc.Spec.ImagePullSecrets {
		secrets = append(secrets, corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	return secrets
}

// podSecurityContext meets the Pod Security level "restricted". On OpenShift the security context constraints choose the
// user from the namespace's range, and refuse a pod that names one outside it.
func podSecurityContext(on platform.Platform) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if !on.OpenShift {
		security.WithRunAsUser(memcachedUID)
	}
	return security
}
