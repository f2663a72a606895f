// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// An operator that is killed gets no answer to the request that it is about to send, or to the one it just sent, and sends
// no other. Whichever request that is, the next operator must come to the same end as one that was never disturbed.
func TestAnOperatorKilledAtAnyPointIsFollowedByTheSameEnd(t *testing.T) {
	t.Parallel()
	errKilled := errors.New("killed")
	want := endState(t, newNamespace(t), &requests{})

	// Creating takes six requests and the change two or three; positions past the last are no kill at all.
	for position := 1; position <= 9; position++ {
		for _, answered := range []bool{false, true} {
			t.Run(fmt.Sprintf("request %d, carried out: %t", position, answered), func(t *testing.T) {
				t.Parallel()
				got := endState(t, newNamespace(t), &requests{
					intercept: func(at int, request *http.Request, next http.RoundTripper) (*http.Response, error) {
						if at < position {
							return next.RoundTrip(request)
						}
						if at == position && answered {
							if response, err := next.RoundTrip(request); err == nil {
								_ = response.Body.Close() // the dead don't read
							}
						}
						return nil, errKilled
					},
				})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("end state (-undisturbed +killed):\n%s", diff)
				}
			})
		}
	}
}

// endState lets an operator with those requests create and change a Memcached, lets another one follow it, and returns what
// there is in the end.
func endState(t *testing.T, namespace string, of *requests) map[string]any {
	t.Helper()
	victim := startOperator(t, namespace, withRequests(of))
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	waitForRequests(t, of, 6)
	changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	waitForRequests(t, of, 8)
	victim.stop()

	startOperator(t, namespace)
	var end map[string]any
	eventually(t, func(g gomega.Gomega) {
		mc := get(t, g, namespace, "cart", &cachev1.Memcached{})
		deployment := get(t, g, namespace, "cart", &appsv1.Deployment{})
		service := get(t, g, namespace, "cart", &corev1.Service{})
		g.Expect(*deployment.Spec.Replicas).To(gomega.BeEquivalentTo(2))
		g.Expect(mc.Status.ObservedGeneration).To(gomega.Equal(mc.Generation))
		g.Expect(mc.Status.Image).NotTo(gomega.BeEmpty(), "the status knows of the Deployment")
		g.Expect(metav1.IsControlledBy(deployment, mc)).To(gomega.BeTrue())
		g.Expect(metav1.IsControlledBy(service, mc)).To(gomega.BeTrue())
		for i := range mc.Status.Conditions {
			mc.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		mc.Status.Endpoint = "" // holds the namespace
		end = map[string]any{
			"status": mc.Status, "deployment": contents(deployment), "service": contents(service),
		}
	})
	deployments := &appsv1.DeploymentList{}
	if err := testClient.List(t.Context(), deployments, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	end["deployments"] = len(deployments.Items)
	return end
}

// waitForRequests waits until that many were sent, or no more come: a killed operator sends fewer that count.
func waitForRequests(t *testing.T, of *requests, number int) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		of.mutex.Lock()
		defer of.mutex.Unlock()
		g.Expect(len(of.seen)).To(gomega.BeNumerically(">=", number))
	})
}
