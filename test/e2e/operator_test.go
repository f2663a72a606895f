// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package e2e

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// What happens to the operator. These tests restart it, stop it or count what it does, so they run one after the other,
// before those that run side by side.

// idle is how long the world stays as it is, and the operator must write nothing.
const idle = time.Minute

// Covers a world at rest in all the forms that rest takes, and a restarted operator that finds it. Why a pass writes nothing
// is left to controllers.
func TestAnUnchangedWorldCausesNoWrite(t *testing.T) {
	begin := needsAuditLog(t)
	namespace := framework.NewNamespace(t)
	framework.Kubectl(t, namespace, "create", "service", "clusterip", "conflict", "--tcp=80")
	framework.Apply(t, namespace, framework.Memcached("two", "{size: 2}")+
		framework.Memcached("follow", "{size: 1, imagePolicy: Follow}")+
		framework.Memcached("zero", "{size: 0}")+
		framework.Memcached("conflict", "{size: 1}")+
		framework.Memcached("unpullable", "{size: 1, image: registry.example.com/no/such/memcached:1}"))
	for name, size := range map[string]int{"two": 2, "follow": 1, "zero": 0} {
		framework.Serves(t, namespace, name, size)
	}
	for name, reason := range map[string]string{"conflict": cachev1.ReasonNameConflict, "unpullable": cachev1.ReasonImagePullFailed} {
		framework.Eventually(t, func(g gomega.Gomega) {
			g.Expect(framework.Condition(g, namespace, name, cachev1.ConditionReady).Reason).To(gomega.Equal(reason))
		})
	}
	framework.Eventually(t, func(g gomega.Gomega) { // come to rest
		for _, write := range writesSince(t, begin) {
			g.Expect(time.Since(write.RequestReceivedTimestamp)).To(gomega.BeNumerically(">", watching), "%s", write)
		}
	})

	rest := needsAuditLog(t)
	noWrite := func(g gomega.Gomega) { g.Expect(writesSince(t, rest)).To(gomega.BeEmpty()) }
	framework.Stays(t, idle, noWrite)
	requests, err := requestsSince(rest)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("over %s of an unchanged world with 5 Memcacheds: no write; all requests: %v", idle, counts(requests))

	rest = needsAuditLog(t)
	old := leader(t)
	framework.Kubectl(t, operatorNamespace, "rollout", "restart", operatorDeployment)
	operatorIsRolledOut(t)
	current := leader(t)
	if current == old {
		t.Fatal("the operator wasn't restarted")
	}
	// The one with the conflict is read past the cache in each pass: so it is seen that there was one.
	framework.Eventually(t, func(g gomega.Gomega) {
		requests, err = requestsSince(rest)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(slices.ContainsFunc(requests, func(r request) bool {
			return r.Verb == "get" && r.ObjectRef.Resource == "services" && r.ObjectRef.Name == "conflict" && r.pod() == current
		})).To(gomega.BeTrue(), "a pass of the new leader")
	})
	framework.Stays(t, 2*watching, noWrite)
	requests, err = requestsSince(rest)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("after a restart of the operator: no write but for leadership; all requests: %v", counts(requests))
}

// counts are how often each right was used.
func counts(requests []request) map[string]int {
	all := map[string]int{}
	for _, r := range requests {
		all[r.right()]++
	}
	return all
}

// Covers an upgrade of the operator as the caches see it.
func TestAnOperatorWithAnotherDefaultImage(t *testing.T) {
	t.Cleanup(func() {
		setDefaultImage(t, defaultImage)
		operatorIsRolledOut(t)
	})
	namespace := framework.NewNamespace(t)
	const size = 2
	framework.Apply(t, namespace, framework.Memcached("keep", "{size: 2}")+framework.Memcached("follow", "{size: 2, imagePolicy: Follow}"))
	kept, followed := framework.Serves(t, namespace, "keep", size), framework.Serves(t, namespace, "follow", size)
	before := framework.UIDs(t, namespace)
	if _, err := framework.InClient(append([]string{"set", "session", "alive"}, framework.Addresses(kept)...)...); err != nil {
		t.Fatal(err)
	}

	setDefaultImage(t, otherImage)
	fewest := size
	framework.Eventually(t, func(g gomega.Gomega) {
		pods := framework.PodsOf(t, namespace, "follow")
		serving := 0
		for _, pod := range pods {
			if pod.DeletionTimestamp.IsZero() && framework.IsReady(pod) {
				serving++
			}
		}
		fewest = min(fewest, serving)
		if serving < size {
			gomega.StopTrying(fmt.Sprintf("%d pods serve during the roll, want %d or more", serving, size)).Now()
		}
		g.Expect(pods).To(gomega.HaveLen(size))
		for _, pod := range pods {
			g.Expect(pod.Spec.Containers[0].Image).To(gomega.Equal(otherImage))
		}
	})
	operatorIsRolledOut(t)
	for name := range framework.Serves(t, namespace, "follow", size) {
		if _, found := followed[name]; found {
			t.Errorf("Follow: pod %q is still there", name)
		}
	}
	t.Logf("Follow: all pods were replaced, never fewer than %d of %d serving", fewest, size)

	var update metav1.Condition
	framework.Eventually(t, func(g gomega.Gomega) {
		update = framework.Condition(g, namespace, "keep", cachev1.ConditionUpdateAvailable)
		g.Expect(update.Status).To(gomega.Equal(metav1.ConditionTrue))
		g.Expect(update.Reason).To(gomega.Equal(cachev1.ReasonDefaultDiffers))
		g.Expect(update.Message).To(gomega.And(gomega.ContainSubstring(defaultImage), gomega.ContainSubstring(otherImage)))
		g.Expect(framework.Get(g, namespace, "keep", &cachev1.Memcached{}).Status.Image).To(gomega.Equal(defaultImage))
	})
	if diff := cmp.Diff(kept, framework.Serves(t, namespace, "keep", size)); diff != "" {
		t.Errorf("Keep: pods (-before +after):\n%s", diff)
	}
	for _, pod := range framework.PodsOf(t, namespace, "keep") {
		if before[pod.Name] != string(pod.UID) {
			t.Errorf("Keep: pod %q has the UID %q, want %q as before", pod.Name, pod.UID, before[pod.Name])
		}
	}
	stored, err := framework.InClient(append([]string{"get", "session"}, framework.Addresses(kept)...)...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"alive", "alive"}, stored); diff != "" {
		t.Errorf("Keep: what the pods had stored (-want +got):\n%s", diff)
	}
	t.Logf("Keep: the same pods with the same contents; UpdateAvailable=%s: %s", update.Status, update.Message)
}

// Covers that nothing waits for the operator, as finalizers would.
func TestDeletionDoesNotNeedTheOperator(t *testing.T) {
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 2}")+framework.Memcached("session", "{size: 1}"))
	framework.Serves(t, namespace, "cart", 2)
	framework.Serves(t, namespace, "session", 1)

	deployment := framework.Get(gomega.NewWithT(t), operatorNamespace, strings.TrimPrefix(operatorDeployment, "deployment/"), &appsv1.Deployment{})
	t.Cleanup(func() {
		framework.Kubectl(t, operatorNamespace, "scale", operatorDeployment, fmt.Sprintf("--replicas=%d", *deployment.Spec.Replicas))
		operatorIsRolledOut(t)
	})
	framework.Kubectl(t, operatorNamespace, "scale", operatorDeployment, "--replicas=0")
	framework.Eventually(t, func(g gomega.Gomega) { g.Expect(operatorPods(t)).To(gomega.BeEmpty()) })

	framework.Kubectl(t, namespace, "delete", "memcached", "session")
	framework.LeavesNothing(t, namespace, "session")
	begin := time.Now()
	framework.Kubectl(t, "", "delete", "namespace", namespace, "--timeout=120s")
	t.Logf("the namespace was gone after %.0f s", time.Since(begin).Seconds())
}

// Covers the death of the leader in the midst of work, and that two operators don't work at the same time. Death at every
// single point is left to controllers.
func TestAKilledOperatorIsReplacedAndOnlyTheLeaderWrites(t *testing.T) {
	begin, err := auditPosition()
	if err != nil {
		t.Fatal(err)
	}
	namespace := framework.NewNamespace(t)
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
	framework.Serves(t, namespace, "cart", 1)
	if pods := operatorPods(t); len(pods) < 2 {
		t.Fatalf("the operator has %d pods, want 2 or more", len(pods))
	}
	first := leader(t)
	framework.Kubectl(t, namespace, "scale", "memcached/cart", "--replicas=4")
	framework.Kubectl(t, operatorNamespace, "delete", "pod", first, "--grace-period=0", "--force")
	killed := time.Now()
	framework.Serves(t, namespace, "cart", 4)
	second := leader(t)
	if second == first {
		t.Fatalf("%q still leads", first)
	}
	t.Logf("4 pods %.0f s after the leader was killed", time.Since(killed).Seconds())
	framework.Kubectl(t, namespace, "scale", "memcached/cart", "--replicas=1")
	framework.Serves(t, namespace, "cart", 1)
	operatorIsRolledOut(t)

	if requests, err := requestsSince(begin); err != nil {
		t.Logf("left out: who wrote: %v", err)
	} else if len(requests) > 0 {
		writes := writesSince(t, begin)
		slices.SortStableFunc(writes, func(a, b request) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp) })
		var writers []string
		for _, write := range writes {
			writers = append(writers, write.pod())
		}
		writers = slices.Compact(writers)
		if diff := cmp.Diff([]string{first, second}, writers); diff != "" {
			t.Errorf("who wrote, in turn (-want +got):\n%s\n%v", diff, writes)
		}
		t.Logf("%d writes, the first ones by %s, the others by %s, both leaders at the time", len(writes), first, second)
	}
}

// Covers who may read the operator's metrics, from a pod as a Prometheus would. What is in them is controller-runtime's.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	t.Parallel()
	namespace := framework.NewNamespace(t)
	for _, account := range []string{"reader", "nobody"} {
		framework.Kubectl(t, namespace, "create", "serviceaccount", account)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace}, Spec: framework.ClientPodSpec()}
		pod.Spec.ServiceAccountName = account
		if err := framework.Client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	binding := namespace + "-metrics"
	t.Cleanup(func() { framework.Kubectl(t, "", "delete", "clusterrolebinding", binding, "--ignore-not-found") })
	framework.Kubectl(t, "", "create", "clusterrolebinding", binding,
		"--clusterrole=memcached-operator-metrics-reader", "--serviceaccount="+namespace+":reader")
	framework.Eventually(t, func(g gomega.Gomega) { // before the operator asks, which remembers the answer
		_, err := framework.TryKubectl("", "auth", "can-i", "get", "/metrics", "--as=system:serviceaccount:"+namespace+":reader")
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	framework.Kubectl(t, namespace, "wait", "--for=condition=Ready", "pod/reader", "pod/nobody", "--timeout=120s")

	const (
		service = "https://memcached-operator-controller-manager-metrics-service." + operatorNamespace + ".svc:8443/metrics"
		token   = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	)
	scrape := func(account string, args ...string) (status, body string) {
		output := framework.Kubectl(t, namespace, append([]string{"exec", account, "--", "/memcacheclient", "httpget"}, args...)...)
		status, body, _ = strings.Cut(output, "\n")
		return status, body
	}
	for _, test := range []struct {
		who  string
		as   string
		args []string
		want string
	}{
		{"somebody without a token", "reader", []string{service}, "401 Unauthorized"},
		{"somebody without the role metrics-reader", "nobody", []string{service, token}, "403 Forbidden"},
		{"somebody with the role metrics-reader", "reader", []string{service, token}, "200 OK"},
	} {
		status, body := scrape(test.as, test.args...)
		if status != test.want {
			t.Errorf("%s gets %q, want %q", test.who, status, test.want)
		}
		if isMetrics := strings.Contains(body, "go_goroutines"); isMetrics != (test.want == "200 OK") {
			t.Errorf("%s gets %q, and metrics: %t", test.who, status, isMetrics)
		}
		t.Logf("%s gets %s", test.who, status)
	}
	// Only the leader reconciles, so only its metrics tell of it.
	pod := framework.Get(gomega.NewWithT(t), operatorNamespace, leader(t), &corev1.Pod{})
	status, body := scrape("reader", "https://"+net.JoinHostPort(pod.Status.PodIP, "8443")+"/metrics", token)
	if !strings.Contains(body, `controller_runtime_reconcile_total{controller="memcached",result="success"}`) {
		t.Errorf("the leader's metrics don't tell how often it reconciled: %s\n%s", status, body)
	}
}

// setDefaultImage restarts the operator with another default image, and doesn't wait for it.
func setDefaultImage(t *testing.T, image string) {
	t.Helper()
	framework.Kubectl(t, operatorNamespace, "set", "env", operatorDeployment, "RELATED_IMAGE_MEMCACHED="+image)
}

// operatorIsRolledOut waits until the operator's pods are those that its Deployment asks for, and one of them leads.
func operatorIsRolledOut(t *testing.T) {
	t.Helper()
	framework.Kubectl(t, operatorNamespace, "rollout", "status", operatorDeployment, "--timeout=3m")
	framework.Eventually(t, func(g gomega.Gomega) {
		for _, pod := range operatorPods(t) {
			g.Expect(pod.DeletionTimestamp).To(gomega.BeNil(), pod.Name)
		}
	})
	leader(t)
}

// leader is the name of the operator's pod that leads. It waits until there is one.
func leader(t *testing.T) string {
	t.Helper()
	var name string
	framework.Eventually(t, func(g gomega.Gomega) {
		lease := framework.Get(g, operatorNamespace, "memcached-operator.cache.example.com", &coordinationv1.Lease{})
		g.Expect(lease.Spec.HolderIdentity).NotTo(gomega.BeNil())
		name, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
		g.Expect(slices.ContainsFunc(operatorPods(t), func(pod corev1.Pod) bool {
			return pod.Name == name && pod.DeletionTimestamp.IsZero()
		})).To(gomega.BeTrue(), "pod %q, which holds the Lease, is there", name)
	})
	return name
}

func operatorPods(t *testing.T) []corev1.Pod {
	t.Helper()
	return framework.Pods(t, operatorNamespace, map[string]string{"control-plane": "controller-manager"})
}
