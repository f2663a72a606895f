// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package e2e

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// Covers what a person reads who makes a mistake. All rules of the API are left to controllers.
func TestKubectlApplyRefusesBadInput(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	tests := map[string]struct {
		manifest string
		want     []string
	}{
		"size below zero":           {framework.Memcached("cart", "{size: -1}"), []string{"spec.size", "-1", "greater than or equal to 0"}},
		"size with a fraction":      {framework.Memcached("cart", "{size: 1.5}"), []string{"spec.size", "must be of type integer"}},
		"size as text":              {framework.Memcached("cart", `{size: "3"}`), []string{"spec.size", "must be of type integer", "string"}},
		"size missing":              {framework.Memcached("cart", "{}"), []string{"spec.size", "Required value"}},
		"an unknown field":          {framework.Memcached("cart", "{size: 3, replicas: 3}"), []string{`unknown field "spec.replicas"`}},
		"a name of 64 characters":   {framework.Memcached(strings.Repeat("a", 64), "{size: 1}"), []string{"metadata.name", "63"}},
		"a name that begins with 1": {framework.Memcached("1cache", "{size: 1}"), []string{"metadata.name", "begin with a letter"}},
		"a name with a dot":         {framework.Memcached("a.b", "{size: 1}"), []string{"metadata.name", "DNS-1035"}},
		"a name in upper case":      {framework.Memcached("A", "{size: 1}"), []string{"metadata.name", "lower"}},
		"an empty image":            {framework.Memcached("cart", `{size: 1, image: ""}`), []string{"spec.image", "leave image out"}},
		"an imagePolicy unheard of": {framework.Memcached("cart", "{size: 1, imagePolicy: Sometimes}"), []string{"spec.imagePolicy", "Sometimes", "Keep", "Follow"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			output, err := framework.TryKubectl(test.manifest, "--namespace", namespace, "apply", "-f", "-")
			if err == nil {
				t.Fatalf("kubectl apply gave %q, want an error", output)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message %q does not contain %q", err, part)
				}
			}
			_, message, _ := strings.Cut(err.Error(), "exit status 1: ")
			t.Log(message)
		})
	}
	for _, list := range []client.ObjectList{&cachev1.MemcachedList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.PodList{}} {
		if err := framework.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if meta.LenList(list) > 0 {
			t.Errorf("something is half-made: %v", list)
		}
	}
}

// Covers what only shows once a node or the cluster's rules have their say: the reason and the message reach the user, and
// the Memcached heals once the cause is gone. How conditions are worked out is left to internal/status.
func TestRefusalsAtRunTimeReachTheConditionAndHeal(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, namespace, reason string, message ...string) {
		t.Helper()
		check := func(g gomega.Gomega) {
			for _, kind := range []string{cachev1.ConditionReady, cachev1.ConditionDegraded} {
				got := framework.Condition(g, namespace, "cart", kind)
				g.Expect(got.Reason).To(gomega.Equal(reason), kind)
				g.Expect(got.Status == metav1.ConditionTrue).To(gomega.Equal(kind == cachev1.ConditionDegraded), kind)
				for _, part := range message {
					g.Expect(got.Message).To(gomega.ContainSubstring(part), kind)
				}
			}
		}
		framework.Eventually(t, check)
		framework.Stays(t, watching, check)
		t.Logf("Ready=False %s: %s", reason, framework.Condition(gomega.NewWithT(t), namespace, "cart", cachev1.ConditionReady).Message)
	}

	// recovers wakes the ReplicaSet controller, which after some refusals doesn't try again for up to 16 minutes. How long
	// it waits is Kubernetes' own; that all is well once it tries is ours.
	recovers := func(t *testing.T, namespace string, size int) {
		t.Helper()
		framework.Eventually(t, func(g gomega.Gomega) {
			_, err := framework.TryKubectl("", "--namespace", namespace, "annotate", "replicaset", "--all", "--overwrite", "example.com/wake="+rand.Text())
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(framework.Get(g, namespace, "cart", &cachev1.Memcached{}).Status.Nodes).To(gomega.HaveLen(size))
		})
		framework.Serves(t, namespace, "cart", size)
	}

	t.Run("an image that can't be pulled", func(t *testing.T) {
		t.Parallel()
		namespace := framework.NewNamespace(t)
		const image = "registry.example.com/no/such/memcached:1"
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1, image: "+image+"}"))
		refused(t, namespace, cachev1.ReasonImagePullFailed, image)
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1, image: "+otherImage+"}"))
		framework.Serves(t, namespace, "cart", 1)
	})
	t.Run("a quota", func(t *testing.T) {
		t.Parallel()
		namespace := framework.NewNamespace(t)
		framework.Kubectl(t, namespace, "create", "quota", "tight", "--hard=pods=1")
		framework.Eventually(t, func(g gomega.Gomega) { // until then it doesn't count
			g.Expect(framework.Get(g, namespace, "tight", &corev1.ResourceQuota{}).Status.Hard).NotTo(gomega.BeEmpty())
		})
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}"))
		refused(t, namespace, cachev1.ReasonPodsRefused, "exceeded quota: tight", "limited: pods=1")
		framework.Eventually(t, func(g gomega.Gomega) {
			g.Expect(framework.Get(g, namespace, "cart", &cachev1.Memcached{}).Status.ReadyReplicas).To(gomega.BeEquivalentTo(1))
		})
		framework.Kubectl(t, namespace, "delete", "quota", "tight")
		recovers(t, namespace, 2)
	})
	t.Run("a limit range", func(t *testing.T) {
		t.Parallel()
		namespace := framework.NewNamespace(t)
		framework.Apply(t, namespace, "{apiVersion: v1, kind: LimitRange, metadata: {name: small}, spec: {limits: [{type: Container, max: {memory: 64Mi}}]}}")
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
		refused(t, namespace, cachev1.ReasonPodsRefused, "maximum memory usage per Container is 64Mi")
		framework.Kubectl(t, namespace, "delete", "limitrange", "small")
		recovers(t, namespace, 1)
	})
	t.Run("an admission policy on pods", func(t *testing.T) {
		t.Parallel()
		namespace := framework.NewNamespace(t)
		forbid(t, namespace, "pods")
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
		refused(t, namespace, cachev1.ReasonPodsRefused, "no caches in this namespace")
		framework.Kubectl(t, "", "delete", "validatingadmissionpolicybinding", namespace)
		recovers(t, namespace, 1)
	})
	t.Run("an admission policy on Deployments", func(t *testing.T) {
		t.Parallel()
		namespace := framework.NewNamespace(t)
		forbid(t, namespace, "deployments")
		framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
		refused(t, namespace, cachev1.ReasonApplyRefused, "no caches in this namespace")
		framework.Kubectl(t, "", "delete", "validatingadmissionpolicybinding", namespace)
		framework.Serves(t, namespace, "cart", 1)
	})
}

// forbid makes the API server refuse to create such objects in the namespace, by a policy that is named after it.
func forbid(t *testing.T, namespace, resource string) {
	t.Helper()
	group := map[string]string{"pods": "", "deployments": "apps"}[resource]
	t.Cleanup(func() {
		for _, kind := range []string{"validatingadmissionpolicybinding", "validatingadmissionpolicy"} {
			if _, err := framework.TryKubectl("", "delete", kind, namespace, "--ignore-not-found"); err != nil {
				t.Error(err)
			}
		}
	})
	framework.Apply(t, namespace, strings.NewReplacer("NAME", namespace, "GROUP", group, "RESOURCE", resource).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["GROUP"], apiVersions: [v1], operations: [CREATE], resources: [RESOURCE]}]
  validations: [{expression: "false", message: no caches in this namespace}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec:
  policyName: NAME
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}
`))
	framework.Eventually(t, func(g gomega.Gomega) { // it takes a moment until it is in force
		dryRun := []string{"--namespace", namespace, "create", "deployment", "probe", "--image=probe", "--dry-run=server"}
		if resource == "pods" {
			dryRun = []string{"--namespace", namespace, "run", "probe", "--image=probe", "--dry-run=server"}
		}
		_, err := framework.TryKubectl("", dryRun...)
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("no caches in this namespace")))
	})
}
