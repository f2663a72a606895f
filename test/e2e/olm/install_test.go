// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// subscribe does what an administrator does: an OperatorGroup that selects the namespaces to watch, none for all of them,
// and a Subscription. The administrator approves each version, so that a test says when an upgrade begins. Leader
// election is short, so that tests needn't wait for a minute until another replica leads.
func subscribe(t *testing.T, namespace string, first release, targets ...string) {
	t.Helper()
	framework.Apply(t, namespace, fmt.Sprintf(`
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: %[1]s
spec:
  targetNamespaces: [%[2]s]
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: %[1]s
spec:
  name: %[1]s
  channel: stable-v1
  source: %[3]s
  sourceNamespace: %[4]s
  startingCSV: %[5]s
  installPlanApproval: Manual
  config:
    env:
    - {name: LEADER_ELECTION_LEASE_DURATION, value: 15s}
    - {name: LEADER_ELECTION_RENEW_DEADLINE, value: 10s}
    - {name: LEADER_ELECTION_RETRY_PERIOD, value: 2s}
`, packageName, strings.Join(targets, ", "), catalogSource, catalogNamespace, first.csv()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(state(namespace))
		}
		unsubscribe(t, namespace)
	})
}

// rolesForUsers are the ClusterRoles of the bundle. OLM leaves them behind.
var rolesForUsers = []string{
	"memcached-operator-memcached-admin-role", "memcached-operator-memcached-editor-role",
	"memcached-operator-memcached-viewer-role", "memcached-operator-metrics-reader",
}

// removeWhatRemains leaves the cluster at the end of a test as one that never had the operator.
func removeWhatRemains(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		framework.Kubectl(t, "", "delete", "crd", crd, "--ignore-not-found", "--timeout=2m")
		framework.Kubectl(t, "", append([]string{"delete", "clusterrole", "--ignore-not-found"}, rolesForUsers...)...)
	})
}

// unsubscribe uninstalls the operator as the documentation says.
func unsubscribe(t *testing.T, namespace string) {
	t.Helper()
	framework.Kubectl(t, namespace, "delete", "subscription", packageName, "--ignore-not-found")
	framework.Kubectl(t, namespace, "delete", "clusterserviceversion", "--selector=operators.coreos.com/"+packageName+"."+namespace, "--ignore-not-found")
	framework.Eventually(t, func(g gomega.Gomega) {
		var operator appsv1.Deployment
		err := framework.Client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: deployment}, &operator)
		g.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
		g.Expect(err).To(gomega.HaveOccurred(), "the operator's Deployment is still there")
	})
}

// install subscribes and waits until the operator runs.
func install(t *testing.T, namespace string, first release, targets ...string) {
	t.Helper()
	subscribe(t, namespace, first, targets...)
	approve(t, namespace, first)
	succeeds(t, namespace, first)
}

// approve lets OLM install a version, and waits until that is done. OLM starts a plan anew if somebody changes it before OLM
// has said that it wants approval.
func approve(t *testing.T, namespace string, wanted release) {
	t.Helper()
	framework.Eventually(t, func(g gomega.Gomega) {
		var plans v1alpha1.InstallPlanList
		g.Expect(framework.Client.List(context.Background(), &plans, client.InNamespace(namespace))).To(gomega.Succeed())
		done := false
		for _, plan := range plans.Items {
			if !slices.Equal(plan.Spec.ClusterServiceVersionNames, []string{wanted.csv()}) {
				continue
			}
			done = done || plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete
			if plan.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && !plan.Spec.Approved {
				plan.Spec.Approved = true
				g.Expect(framework.Client.Update(context.Background(), &plan)).To(gomega.Succeed())
			}
		}
		g.Expect(done).To(gomega.BeTrue(), "a plan for %s is carried out", wanted.csv())
	})
}

// succeeds waits until OLM says that a version runs.
func succeeds(t *testing.T, namespace string, wanted release) {
	t.Helper()
	framework.Eventually(t, func(g gomega.Gomega) {
		csv := framework.Get(g, namespace, wanted.csv(), &v1alpha1.ClusterServiceVersion{})
		g.Expect(csv.Status.Phase).To(gomega.Equal(v1alpha1.CSVPhaseSucceeded), csv.Status.Message)
	})
}

// upgradeable is the operator's word on whether OLM may replace it.
func upgradeable(g gomega.Gomega, namespace string, of release) (allowed bool, reason, message string) {
	condition := framework.Get(g, namespace, of.csv(), &operatorsv2.OperatorCondition{})
	found := meta.FindStatusCondition(condition.Spec.Conditions, operatorsv2.Upgradeable)
	g.Expect(found).NotTo(gomega.BeNil(), "condition Upgradeable")
	return meta.IsStatusConditionTrue(condition.Spec.Conditions, operatorsv2.Upgradeable), found.Reason, found.Message
}

func state(namespace string) string {
	return framework.Outputs(
		[]string{"-n", namespace, "get", "subscriptions,installplans,clusterserviceversions,operatorconditions", "-o", "yaml"},
		[]string{"-n", namespace, "get", "all", "-o", "wide"},
		[]string{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		[]string{"-n", "olm", "get", "pods,catalogsources"},
		[]string{"-n", "olm", "logs", "deployment/catalog-operator", "--tail=30"},
		[]string{"-n", "olm", "logs", "deployment/olm-operator", "--tail=30"},
	) + framework.OperatorState()
}
