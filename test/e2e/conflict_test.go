// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

const (
	// healing is how soon a Memcached is ready once what was in its way is gone.
	healing = time.Minute
	// watching is how long a stranger is watched for changes, so that a few passes of the operator fall into it.
	watching = 5 * time.Second
)

// Covers strangers that run, with the real controllers and the real garbage collector. Every variant, and that nothing is
// half-made, is left to controllers.
func TestStrangersOfTheSameNameAreLeftAlone(t *testing.T) {
	t.Parallel()
	unlabelled := func(*testing.T, client.Object) {}
	labelled := func(_ *testing.T, o client.Object) { maps.Copy(o.GetLabels(), ownLabels()) }
	controlled := func(t *testing.T, o client.Object) {
		t.Helper()
		labelled(t, o)
		framework.Apply(t, o.GetNamespace(), framework.Memcached("other", "{size: 0}"))
		other := framework.Get(gomega.NewWithT(t), o.GetNamespace(), "other", &cachev1.Memcached{})
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(other, cachev1.GroupVersion.WithKind("Memcached"))})
	}
	tests := map[string]struct {
		stranger client.Object
		dress    func(*testing.T, client.Object)
	}{
		"Deployment without labels":                  {&appsv1.Deployment{}, unlabelled},
		"Deployment with all our labels":             {&appsv1.Deployment{}, labelled},
		"Deployment that another Memcached controls": {&appsv1.Deployment{}, controlled},
		"Service without labels":                     {&corev1.Service{}, unlabelled},
		"Service with all our labels":                {&corev1.Service{}, labelled},
		"Service that another Memcached controls":    {&corev1.Service{}, controlled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := framework.NewNamespace(t)
			stranger, kind := test.stranger, "Service"
			stranger.SetName("cart")
			stranger.SetNamespace(namespace)
			stranger.SetLabels(map[string]string{})
			test.dress(t, stranger)
			switch stranger := stranger.(type) {
			case *appsv1.Deployment:
				kind = "Deployment"
				theirs := map[string]string{"app": "theirs"}
				maps.Copy(theirs, stranger.Labels)
				stranger.Spec.Selector = &metav1.LabelSelector{MatchLabels: theirs}
				stranger.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: theirs}, Spec: framework.ClientPodSpec()}
			case *corev1.Service:
				stranger.Spec.Ports = []corev1.ServicePort{{Port: 80}}
				stranger.Spec.Selector = map[string]string{"app": "theirs"}
			}
			if err := framework.Client.Create(t.Context(), stranger); err != nil {
				t.Fatal(err)
			}
			if kind == "Deployment" {
				framework.Kubectl(t, namespace, "rollout", "status", "deployment/cart", "--timeout=120s")
				framework.Eventually(t, func(g gomega.Gomega) { // so that its own controller has no more to say
					now := framework.Get(g, namespace, "cart", stranger).(*appsv1.Deployment)
					for _, condition := range now.Status.Conditions {
						g.Expect(condition.Reason).To(gomega.BeElementOf("MinimumReplicasAvailable", "NewReplicaSetAvailable"))
					}
				})
			}
			before, version := framework.UIDs(t, namespace), stranger.GetResourceVersion()

			framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
			framework.Eventually(t, func(g gomega.Gomega) {
				ready := framework.Condition(g, namespace, "cart", cachev1.ConditionReady)
				g.Expect(ready.Status).To(gomega.Equal(metav1.ConditionFalse))
				g.Expect(ready.Reason).To(gomega.Equal(cachev1.ReasonNameConflict))
				g.Expect(ready.Message).To(gomega.ContainSubstring(`the %s "cart"`, kind))
			})
			framework.Stays(t, watching, func(g gomega.Gomega) {
				g.Expect(framework.Get(g, namespace, "cart", stranger).GetResourceVersion()).To(gomega.Equal(version))
				g.Expect(framework.Get(g, namespace, "cart", &cachev1.Memcached{}).Status.Nodes).To(gomega.BeEmpty())
			})
			if diff := cmp.Diff(before, framework.UIDs(t, namespace)); diff != "" {
				t.Errorf("pods of the stranger (-before +after):\n%s", diff)
			}
			t.Log(framework.Condition(gomega.NewWithT(t), namespace, "cart", cachev1.ConditionReady).Message)

			framework.Kubectl(t, namespace, "delete", strings.ToLower(kind), "cart")
			gone := time.Now()
			framework.Within(t, healing, func(g gomega.Gomega) {
				g.Expect(framework.Condition(g, namespace, "cart", cachev1.ConditionReady).Status).To(gomega.Equal(metav1.ConditionTrue))
			})
			t.Logf("ready %.0f s after the stranger was gone", time.Since(gone).Seconds())
			framework.Serves(t, namespace, "cart", 1)
		})
	}
}

// ownLabels are all that an object or pod of the Memcached "cart" carries.
func ownLabels() map[string]string {
	return map[string]string{
		"app":                          "memcached",
		"app.kubernetes.io/component":  "cache",
		"app.kubernetes.io/instance":   "cart",
		"app.kubernetes.io/managed-by": "memcached-operator",
		"app.kubernetes.io/name":       "memcached",
		"memcached_cr":                 "cart",
	}
}

// Covers the children of an earlier Memcached of the same name: those that the garbage collector is about to take, and
// those that were left behind on purpose, which belong to nobody.
func TestARecreatedMemcachedConverges(t *testing.T) {
	t.Parallel()
	t.Run("while the garbage collector still has the old children to take", func(t *testing.T) {
		t.Parallel()
		namespace := framework.NewNamespace(t)
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}"))
		before := framework.Serves(t, namespace, "cart", 2)
		framework.Kubectl(t, namespace, "delete", "memcached", "cart", "--wait=false")
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}"))
		framework.Within(t, healing, func(g gomega.Gomega) {
			mc := framework.Get(g, namespace, "cart", &cachev1.Memcached{})
			for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
				g.Expect(metav1.IsControlledBy(framework.Get(g, namespace, "cart", child), mc)).To(gomega.BeTrue())
			}
		})
		for name := range framework.Serves(t, namespace, "cart", 2) {
			if _, found := before[name]; found {
				t.Errorf("pod %q of the old one belongs to the new one", name)
			}
		}
	})
	t.Run("once the orphaned children are deleted", func(t *testing.T) {
		t.Parallel()
		namespace := framework.NewNamespace(t)
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
		orphans := framework.Serves(t, namespace, "cart", 1)
		framework.Kubectl(t, namespace, "delete", "memcached", "cart", "--cascade=orphan")
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
		framework.Eventually(t, func(g gomega.Gomega) {
			ready := framework.Condition(g, namespace, "cart", cachev1.ConditionReady)
			g.Expect(ready.Reason).To(gomega.Equal(cachev1.ReasonNameConflict))
			for _, orphan := range []string{`the Deployment "cart"`, `the Service "cart"`} {
				g.Expect(ready.Message).To(gomega.ContainSubstring(orphan))
			}
		})
		if _, err := framework.InClient(append([]string{"roundtrip"}, framework.Addresses(orphans)...)...); err != nil {
			t.Errorf("the orphaned pod serves no more: %v", err)
		}
		framework.Kubectl(t, namespace, "delete", "service,deployment", "cart")
		framework.Within(t, healing, func(g gomega.Gomega) {
			g.Expect(framework.Condition(g, namespace, "cart", cachev1.ConditionReady).Status).To(gomega.Equal(metav1.ConditionTrue))
		})
		framework.Serves(t, namespace, "cart", 1)
	})
}

// Covers our own child when the cache loses sight of it: it must be taken for ours, and its pods must not notice.
func TestAChildStrippedOfItsLabelsIsHealedAndNoConflict(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
	before := framework.Serves(t, namespace, "cart", 1)
	ready := framework.Condition(gomega.NewWithT(t), namespace, "cart", cachev1.ConditionReady)
	for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		child = framework.Get(gomega.NewWithT(t), namespace, "cart", child)
		stripped := child.DeepCopyObject().(client.Object)
		stripped.SetLabels(nil)
		if err := framework.Client.Patch(t.Context(), stripped, client.MergeFrom(child)); err != nil {
			t.Fatal(err)
		}
		framework.Eventually(t, func(g gomega.Gomega) {
			now := framework.Get(g, namespace, "cart", child)
			g.Expect(now.GetUID()).To(gomega.Equal(stripped.GetUID()))
			for key, value := range ownLabels() {
				g.Expect(now.GetLabels()).To(gomega.HaveKeyWithValue(key, value))
			}
		})
	}
	if diff := cmp.Diff(before, framework.Serves(t, namespace, "cart", 1)); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(ready, framework.Condition(gomega.NewWithT(t), namespace, "cart", cachev1.ConditionReady)); diff != "" {
		t.Errorf("Ready wavered (-before +after):\n%s", diff)
	}
	noErrorsLogged(t, namespace)
}
