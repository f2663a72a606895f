// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package framework

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// Serves waits until the Memcached has come to rest with so many pods, and a memcached client in the cluster stores and
// reads on each of them, by IP and by the Service's name. It returns the IPs by the names of the pods.
func Serves(t *testing.T, namespace, name string, size int) map[string]string {
	t.Helper()
	ips := map[string]string{}
	var endpoint string
	Eventually(t, func(g gomega.Gomega) {
		mc := Get(g, namespace, name, &cachev1.Memcached{})
		g.Expect(mc.Status.ObservedGeneration).To(gomega.Equal(mc.Generation))
		g.Expect(mc.Status.Nodes).To(gomega.HaveLen(size))
		g.Expect(mc.Status.ReadyReplicas).To(gomega.BeEquivalentTo(size))
		for kind, want := range map[string]bool{
			cachev1.ConditionReady: true, cachev1.ConditionProgressing: false, cachev1.ConditionDegraded: false,
		} {
			g.Expect(meta.IsStatusConditionTrue(mc.Status.Conditions, kind)).To(gomega.Equal(want), kind)
		}
		// The status may be that of a moment ago, so what it describes must have come to rest too.
		deployment := Get(g, namespace, name, &appsv1.Deployment{})
		g.Expect(deployment.Status.ObservedGeneration).To(gomega.Equal(deployment.Generation))
		clear(ips)
		for _, pod := range PodsOf(t, namespace, name) {
			if pod.DeletionTimestamp.IsZero() {
				ips[pod.Name] = pod.Status.PodIP
			}
		}
		g.Expect(mc.Status.Nodes).To(gomega.HaveExactElements(slices.Sorted(maps.Keys(ips))))
		endpoint = mc.Status.Endpoint

		// DNS follows a little later.
		host, _, err := net.SplitHostPort(endpoint)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		resolved, err := InClient("lookup", host)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(resolved).To(gomega.ConsistOf(slices.Collect(maps.Values(ips))), "what DNS says of %s", host)
	})
	if size == 0 {
		return ips
	}
	for _, targets := range [][]string{Addresses(ips), {endpoint}} {
		answers, err := InClient(append([]string{"roundtrip"}, targets...)...)
		if err != nil {
			t.Fatal(err)
		}
		if len(answers) != size {
			t.Fatalf("a client stored and read on %d pods by %v, want %d: %v", len(answers), targets, size, answers)
		}
	}
	t.Logf("%s, size %d: a client stored and read on each of %v, by IP and as %s", name, size, slices.Sorted(maps.Values(ips)), endpoint)
	return ips
}

// Addresses of pods, as a memcached client takes them.
func Addresses(ips map[string]string) []string {
	var all []string
	for _, ip := range ips {
		all = append(all, net.JoinHostPort(ip, strconv.Itoa(11211)))
	}
	slices.Sort(all)
	return all
}

// PodsOf are the pods of a Memcached.
func PodsOf(t *testing.T, namespace, name string) []corev1.Pod {
	t.Helper()
	return Pods(t, namespace, map[string]string{"memcached_cr": name})
}

// Pods returns those with the labels.
func Pods(t *testing.T, namespace string, labels map[string]string) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	// Not the test's context: cleaning up asks too.
	if err := Client.List(context.Background(), pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// IsReady tells whether clients are sent to the pod.
func IsReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// UIDs are those of all pods in the namespace, by name.
func UIDs(t *testing.T, namespace string) map[string]string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := Client.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, pod := range pods.Items {
		all[pod.Name] = string(pod.UID)
	}
	return all
}

// LeavesNothing waits until nothing is left of what a Memcached brought.
func LeavesNothing(t *testing.T, namespace, name string) {
	t.Helper()
	Eventually(t, func(g gomega.Gomega) {
		for _, list := range []client.ObjectList{
			&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{},
		} {
			g.Expect(Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"memcached_cr": name})).To(gomega.Succeed())
			g.Expect(meta.LenList(list)).To(gomega.BeZero(), "%T", list)
		}
	})
}
