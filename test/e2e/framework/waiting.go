// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package framework

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

const (
	// Patience is for what must happen, and how quickly is not the point.
	Patience = 2 * time.Minute
	// Polling is how often it is looked for.
	Polling = 250 * time.Millisecond
)

// Eventually waits until check finds nothing to complain about.
func Eventually(t *testing.T, check func(g gomega.Gomega)) {
	t.Helper()
	Within(t, Patience, check)
}

// Within is Eventually, where the time that it may take is part of what is tested.
func Within(t *testing.T, limit time.Duration, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(limit).WithPolling(Polling).Should(gomega.Succeed())
}

// Stays fails as soon as check finds something to complain about.
func Stays(t *testing.T, duration time.Duration, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Consistently(check).WithTimeout(duration).WithPolling(Polling).Should(gomega.Succeed())
}

// Get reads an object, and complains if it isn't there.
func Get[O client.Object](g gomega.Gomega, namespace, name string, obj O) O {
	g.Expect(Client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(gomega.Succeed())
	return obj
}

// Condition reads a condition of a Memcached, and complains unless it is there and describes the current spec.
func Condition(g gomega.Gomega, namespace, name, kind string) metav1.Condition {
	mc := Get(g, namespace, name, &cachev1.Memcached{})
	found := meta.FindStatusCondition(mc.Status.Conditions, kind)
	g.Expect(found).NotTo(gomega.BeNil(), "condition %s", kind)
	g.Expect(found.ObservedGeneration).To(gomega.Equal(mc.Generation), "generation that the status describes")
	return *found
}
