// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// What users do with a Memcached, and what accidents do to it. These tests don't touch the operator, and run side by side.

// Covers what the first five minutes with the operator look like. What is in the objects is left to the golden files.
func TestKubectlApplyOfThreeLinesGivesThreeCaches(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 3}"))
	waited := framework.Kubectl(t, namespace, "wait", "--for=condition=Ready", "memcached/cart", "--timeout=120s")
	pods := framework.Serves(t, namespace, "cart", 3)

	deployment := framework.Get(gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{})
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != defaultImage {
		t.Errorf("the Deployment runs %q, want %q", got, defaultImage)
	}
	if service := framework.Get(gomega.NewWithT(t), namespace, "cart", &corev1.Service{}); service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("the Service has the cluster IP %q, want none", service.Spec.ClusterIP)
	}
	nodes := framework.Kubectl(t, namespace, "get", "memcached", "cart", "-o", "jsonpath={.status.nodes}")
	if want := `["` + strings.Join(slices.Sorted(maps.Keys(pods)), `","`) + `"]`; nodes != want {
		t.Errorf("status.nodes is %s, want %s", nodes, want)
	}

	table := framework.Kubectl(t, namespace, "get", "memcached")
	lines := strings.Split(table, "\n")
	if diff := cmp.Diff([]string{"NAME", "SIZE", "READY", "STATUS", "AGE"}, strings.Fields(lines[0])); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cart", "3", "3", "AllPodsReady"}, strings.Fields(lines[1])[:4]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	for _, args := range [][]string{{"get", "mc"}, {"get", "all"}, {"get", "memcacheds.cache.example.com"}} {
		if output := framework.Kubectl(t, namespace, args...); !strings.Contains(output, "AllPodsReady") {
			t.Errorf("kubectl %s doesn't show the Memcached:\n%s", strings.Join(args, " "), output)
		}
	}
	explained := framework.Kubectl(t, "", "explain", "memcached.spec.imagePolicy")
	for _, part := range []string{"Keep", "Follow", "restarts no pod"} {
		if !strings.Contains(explained, part) {
			t.Errorf("kubectl explain doesn't say %q:\n%s", part, explained)
		}
	}
	t.Logf("kubectl wait: %skubectl get memcached:\n%sstatus.nodes: %s", waited, table, nodes)
}

// Covers the scale subresource, as kubectl and a user who may only edit use it, and what caches keep while they are scaled.
// The rights of the operator itself are checked over the whole suite.
func TestScalingFromThreeToFiveToZeroToTwo(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	for _, role := range []string{"edit", "view"} {
		framework.Kubectl(t, namespace, "create", "serviceaccount", role+"or")
		framework.Kubectl(t, namespace, "create", "rolebinding", role+"or", "--clusterrole="+role, "--serviceaccount="+namespace+":"+role+"or")
	}
	editor, viewer := "--as=system:serviceaccount:"+namespace+":editor", "--as=system:serviceaccount:"+namespace+":viewor"

	framework.Eventually(t, func(g gomega.Gomega) { // once the new bindings have reached the authorizer
		_, err := framework.TryKubectl(framework.Memcached("cart", "{size: 3}"), editor, "--namespace", namespace, "create", "-f", "-")
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	before := framework.Serves(t, namespace, "cart", 3)
	if _, err := framework.InClient(append([]string{"set", "session", "alive"}, framework.Addresses(before)...)...); err != nil {
		t.Fatal(err)
	}

	framework.Kubectl(t, namespace, "scale", "memcached/cart", "--replicas=5", editor)
	after := framework.Serves(t, namespace, "cart", 5)
	for name := range before {
		if _, found := after[name]; !found {
			t.Errorf("pod %q is gone after scaling up", name)
		}
	}
	kept, err := framework.InClient(append([]string{"get", "session"}, framework.Addresses(before)...)...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"alive", "alive", "alive"}, kept); diff != "" {
		t.Errorf("what the pods had stored before scaling up (-want +got):\n%s", diff)
	}

	framework.Eventually(t, func(g gomega.Gomega) {
		_, err := framework.TryKubectl("", viewer, "--namespace", namespace, "get", "memcached", "cart")
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	if output, err := framework.TryKubectl("", viewer, "--namespace", namespace, "scale", "memcached/cart", "--replicas=1"); err == nil ||
		!strings.Contains(err.Error(), "Forbidden") && !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("scaling as a user with the role view gave %q and %v, want that it is forbidden", output, err)
	}
	if output, err := framework.TryKubectl(framework.Memcached("more", "{size: 1}"), viewer, "--namespace", namespace, "create", "-f", "-"); err == nil ||
		!strings.Contains(err.Error(), "forbidden") {
		t.Errorf("creating as a user with the role view gave %q and %v, want that it is forbidden", output, err)
	}

	framework.Kubectl(t, namespace, "scale", "memcached/cart", "--replicas=0", editor)
	framework.Serves(t, namespace, "cart", 0)
	nodes := framework.Kubectl(t, namespace, "get", "memcached", "cart", "-o", "jsonpath={.status.nodes}")
	if nodes != "[]" {
		t.Errorf("status.nodes is %q, want []", nodes)
	}
	ready := framework.Condition(gomega.NewWithT(t), namespace, "cart", cachev1.ConditionReady)
	if ready.Status != metav1.ConditionTrue || ready.Reason != cachev1.ReasonScaledToZero {
		t.Errorf("Ready is %s, %s, want True, %s", ready.Status, ready.Reason, cachev1.ReasonScaledToZero)
	}
	t.Logf("at size 0: nodes %s, Ready %s %s: %s", nodes, ready.Status, ready.Reason, ready.Message)

	framework.Kubectl(t, namespace, "scale", "memcached/cart", "--replicas=2", editor)
	framework.Serves(t, namespace, "cart", 2)
	noErrorsLogged(t, namespace)
}

// Covers what a drained node or a crash does.
func TestADeletedPodIsReplaced(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}"))
	before := framework.Serves(t, namespace, "cart", 2)
	victim := slices.Sorted(maps.Keys(before))[0]
	framework.Kubectl(t, namespace, "delete", "pod", victim)
	framework.Eventually(t, func(g gomega.Gomega) {
		g.Expect(framework.Get(g, namespace, "cart", &cachev1.Memcached{}).Status.Nodes).NotTo(gomega.ContainElement(victim))
	})
	after := framework.Serves(t, namespace, "cart", 2)
	if _, found := after[victim]; found || len(after) != 2 {
		t.Errorf("the pods are %v, want a new one for %q", slices.Sorted(maps.Keys(after)), victim)
	}
}

// Covers that pods and DNS are right again after an edit. Every field that can be edited is left to controllers.
func TestManualEditsAreHealedWithRealPods(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}"))
	before := framework.Serves(t, namespace, "cart", 2)

	framework.Kubectl(t, namespace, "set", "image", "deployment/cart", "memcached="+otherImage)
	framework.Eventually(t, func(g gomega.Gomega) {
		g.Expect(framework.Get(g, namespace, "cart", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image).To(gomega.Equal(defaultImage))
	})
	if diff := cmp.Diff(before, framework.Serves(t, namespace, "cart", 2)); diff != "" {
		t.Errorf("pods after the image was edited and healed (-before +after):\n%s", diff)
	}

	framework.Kubectl(t, namespace, "scale", "deployment/cart", "--replicas=4")
	framework.Eventually(t, func(g gomega.Gomega) {
		g.Expect(*framework.Get(g, namespace, "cart", &appsv1.Deployment{}).Spec.Replicas).To(gomega.BeEquivalentTo(2))
	})
	framework.Serves(t, namespace, "cart", 2)

	framework.Kubectl(t, namespace, "patch", "service", "cart", "--type=merge", "-p", `{"spec": {"selector": {"app": "nginx"}}}`)
	framework.Eventually(t, func(g gomega.Gomega) {
		g.Expect(framework.Get(g, namespace, "cart", &corev1.Service{}).Spec.Selector).To(gomega.HaveKeyWithValue("app", "memcached"))
	})
	before = framework.Serves(t, namespace, "cart", 2)

	framework.Kubectl(t, namespace, "delete", "deployment", "cart")
	framework.Eventually(t, func(g gomega.Gomega) {
		for name := range before {
			g.Expect(framework.Get(g, namespace, "cart", &cachev1.Memcached{}).Status.Nodes).NotTo(gomega.ContainElement(name))
		}
	})
	framework.Serves(t, namespace, "cart", 2)
	noErrorsLogged(t, namespace)
}

// Covers the garbage collection of everything that a Memcached brought, while the operator runs. Without it: see operator_test.go.
func TestDeletingAMemcachedLeavesNothing(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}"))
	framework.Serves(t, namespace, "cart", 2)
	framework.Kubectl(t, namespace, "delete", "memcached", "cart")
	framework.LeavesNothing(t, namespace, "cart")
	noErrorsLogged(t, namespace)
}

// Covers that neither status nor DNS of one Memcached shows pods of another.
func TestTwoMemcachedsInANamespaceDoNotMix(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}")+framework.Memcached("cart-2", "{size: 1}"))
	cart, second := framework.Serves(t, namespace, "cart", 2), framework.Serves(t, namespace, "cart-2", 1)
	for name := range second {
		if _, found := cart[name]; found {
			t.Errorf("pod %q belongs to both", name)
		}
	}
	if _, err := framework.InClient(append([]string{"set", "owner", "cart"}, framework.Addresses(cart)...)...); err != nil {
		t.Fatal(err)
	}
	got, err := framework.InClient("get", "owner", framework.Get(gomega.NewWithT(t), namespace, "cart-2", &cachev1.Memcached{}).Status.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"(none)"}, got); diff != "" {
		t.Errorf("what cart-2 knows of what was stored in cart (-want +got):\n%s", diff)
	}
}

// Covers that pods pass the admission of Pod Security, and run under what it asks for.
func TestCachesRunInANamespaceThatEnforcesRestricted(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/enforce-version=latest")
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
	framework.Serves(t, namespace, "cart", 1)
}

// Covers what a user of the whole cluster sees of foreign pods. That the cache holds none of them is left to controllers.
func TestAThousandForeignPodsAreInNoStatus(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}"))
	pods := framework.Serves(t, namespace, "cart", 2)

	const workers, all = 4, 1000
	errs := make(chan error, workers)
	var created atomic.Int32
	for range workers {
		go func() {
			for i := created.Add(1); i <= all; i = created.Add(1) {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", i), Namespace: namespace},
					Spec:       framework.ClientPodSpec(),
				}
				pod.Spec.SchedulerName = "nobody" // they never run
				if i%10 == 0 {
					pod.Labels = map[string]string{"app": "memcached"}
				}
				if err := framework.Client.Create(t.Context(), pod); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}

	framework.Kubectl(t, namespace, "scale", "memcached/cart", "--replicas=3") // makes the operator look at all it knows
	more := framework.Serves(t, namespace, "cart", 3)
	for name := range pods {
		if _, found := more[name]; !found {
			t.Errorf("pod %q is gone", name)
		}
	}
	if nodes := framework.Get(gomega.NewWithT(t), namespace, "cart", &cachev1.Memcached{}).Status.Nodes; strings.Contains(strings.Join(nodes, " "), "foreign") {
		t.Errorf("status.nodes has foreign pods: %v", nodes)
	}
	foreign, labelled := &corev1.PodList{}, &corev1.PodList{}
	for list, labels := range map[*corev1.PodList]map[string]string{foreign: {}, labelled: {"app": "memcached"}} {
		if err := framework.Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("status.nodes: %v, among %d pods, of which %d with app: memcached",
		slices.Sorted(maps.Keys(more)), len(foreign.Items), len(labelled.Items))
}

// noErrorsLogged looks for complaints of the operator about anything in the namespace.
func noErrorsLogged(t *testing.T, namespace string) {
	t.Helper()
	logs := framework.Kubectl(t, operatorNamespace, "logs", "--selector=control-plane=controller-manager", "--tail=-1")
	for line := range strings.Lines(logs) {
		if strings.Contains(line, namespace) && strings.Contains(line, `"level":"error"`) {
			t.Errorf("the operator logged an error: %s", line)
		}
	}
}
