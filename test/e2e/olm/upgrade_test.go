// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// Covers an upgrade as the caches see it: not at all. It is approved while a rollout runs, so that OLM has to wait; in that
// time the new CRD is there already, and the old operator works with it. A Memcached that will never get its image doesn't
// keep OLM waiting.
func TestAnUpgradeWaitsForARolloutAndThenTouchesNoCache(t *testing.T) {
	removeWhatRemains(t)
	namespace, caches := framework.NewNamespace(t), framework.NewNamespace(t)
	install(t, namespace, current)

	framework.Apply(t, caches, framework.Memcached("cart", "{size: 3}")+
		framework.Memcached("unpullable", "{size: 1, image: registry.example.com/no/such/memcached:1}")+
		framework.Memcached("rolling", "{size: 4}"))
	pods := framework.Serves(t, caches, "cart", 3)
	framework.Serves(t, caches, "rolling", 4)
	framework.Eventually(t, func(g gomega.Gomega) {
		g.Expect(framework.Condition(g, caches, "unpullable", cachev1.ConditionReady).Reason).To(gomega.Equal(cachev1.ReasonImagePullFailed))
		allowed, reason, message := upgradeable(g, namespace, current)
		g.Expect(allowed).To(gomega.BeTrue(), "%s: %s", reason, message)
	})
	uids, kept := framework.UIDs(t, caches), images(t, caches, "cart")
	stop := startTraffic(t, framework.Addresses(pods))

	// A rollout of 4 pods, one after the other, each of which has to stay ready for 10 s.
	framework.Kubectl(t, caches, "patch", "memcached", "rolling", "--type=merge", "--patch",
		fmt.Sprintf(`{"spec": {"image": %q}}`, next.memcached))
	framework.Eventually(t, func(g gomega.Gomega) {
		allowed, reason, message := upgradeable(g, namespace, current)
		g.Expect(allowed).To(gomega.BeFalse())
		g.Expect(message).To(gomega.ContainSubstring("rolling"))
		t.Logf("Upgradeable is False, %s: %s", reason, message)
	})
	begin := time.Now()
	approve(t, namespace, next)
	framework.Eventually(t, func(g gomega.Gomega) {
		held := framework.Get(g, namespace, next.csv(), &v1alpha1.ClusterServiceVersion{})
		g.Expect(held.Status.Phase).To(gomega.Equal(v1alpha1.CSVPhasePending))
		g.Expect(held.Status.Reason).To(gomega.Equal(v1alpha1.CSVReasonOperatorConditionNotUpgradeable))
		t.Logf("OLM holds %s: %s", held.Name, held.Status.Message)
	})
	if explained := framework.Kubectl(t, "", "explain", "memcached.spec."+newField); !strings.Contains(explained, "Of the next release.") {
		t.Errorf("the CRD of the next release isn't there yet:\n%s", explained)
	}
	framework.Kubectl(t, caches, "scale", "memcached/rolling", "--replicas=5") // by the old operator, in the new CRD
	framework.Eventually(t, func(g gomega.Gomega) {
		g.Expect(framework.Get(g, caches, "rolling", &cachev1.Memcached{}).Status.Replicas).To(gomega.BeNumerically(">=", 5))
		held := framework.Get(g, namespace, next.csv(), &v1alpha1.ClusterServiceVersion{})
		g.Expect(held.Status.Phase).To(gomega.Equal(v1alpha1.CSVPhasePending), "while the rollout runs")
	})

	framework.Serves(t, caches, "rolling", 5)
	succeeds(t, namespace, next)
	t.Logf("%s runs %.0f s after it was approved", next.csv(), time.Since(begin).Seconds())
	framework.Eventually(t, func(g gomega.Gomega) {
		update := framework.Condition(g, caches, "cart", cachev1.ConditionUpdateAvailable)
		g.Expect(update.Status).To(gomega.Equal(metav1.ConditionTrue), update.Message)
		t.Logf("UpdateAvailable: %s", update.Message)
	})
	if diff := cmp.Diff(pods, framework.Serves(t, caches, "cart", 3)); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(kept, images(t, caches, "cart")); diff != "" {
		t.Errorf("images (-before +after):\n%s", diff)
	}
	after := framework.UIDs(t, caches)
	for name := range pods {
		if uids[name] != after[name] {
			t.Errorf("pod %q has the UID %q, want %q as before", name, after[name], uids[name])
		}
	}
	stop()
}

// images are those of a Memcached's pods, by name.
func images(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pod := range framework.PodsOf(t, namespace, name) {
		all[pod.Name] = pod.Spec.Containers[0].Image
	}
	return all
}

// startTraffic lets an application use the caches. When it is stopped, it must have found all that it had stored, each
// time that it asked.
func startTraffic(t *testing.T, addresses []string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	arguments := append([]string{"-n", framework.ClientNamespace, "exec", "-i", "client", "--", "/memcacheclient", "traffic"}, addresses...)
	command := exec.CommandContext(ctx, framework.KubectlBinary(), arguments...)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(output)
	if line, readErr := lines.ReadString('\n'); line != "stored\n" {
		t.Fatalf("the application began with %q, %v", line, readErr)
	}
	return func() {
		t.Helper()
		if err := input.Close(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(lines)
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Logf("the application made %s", rest)
		said := strings.Split(strings.TrimSpace(string(rest)), "\n") // each failure, and then the totals
		var reads, misses, failures int
		if _, err := fmt.Sscanf(said[len(said)-1], "%d reads, %d misses, %d failures", &reads, &misses, &failures); err != nil {
			t.Fatalf("%v: %s", err, rest)
		}
		if reads < 1000 || misses > 0 || failures > 0 {
			t.Errorf("want 1000 reads or more, no misses and no failures")
		}
	}
}
