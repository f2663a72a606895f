// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// ignoring is how long a Memcached that isn't the operator's to look after is watched.
const ignoring = 10 * time.Second

// Covers who is looked after, and who is left alone, in the three ways of choosing namespaces. The three installations are
// there at the same time, each for its own tenants. That for all namespaces is left to the tests of upgrading and uninstalling.
func TestTheOperatorGroupSelectsTheNamespaces(t *testing.T) {
	removeWhatRemains(t)
	for _, test := range []struct {
		mode v1alpha1.InstallModeType
		// targets and others are namespaces by the names that the test gives them.
		targets, others []string
	}{
		{v1alpha1.InstallModeTypeOwnNamespace, []string{"own"}, []string{"first"}},
		{v1alpha1.InstallModeTypeSingleNamespace, []string{"first"}, []string{"own", "second"}},
		{v1alpha1.InstallModeTypeMultiNamespace, []string{"first", "second"}, []string{"own", "third"}},
	} {
		t.Run(string(test.mode), func(t *testing.T) {
			t.Parallel()
			namespaces := map[string]string{}
			for _, name := range []string{"own", "first", "second", "third"} {
				namespaces[name] = framework.NewNamespace(t)
			}
			install(t, namespaces["own"], current, values(namespaces, test.targets)...)
			runsAsOLMInstalledIt(t, namespaces["own"])

			for _, namespace := range namespaces {
				framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
			}
			for _, name := range test.targets {
				framework.Serves(t, namespaces[name], "cart", 1)
			}
			framework.Stays(t, ignoring, func(g gomega.Gomega) {
				for _, name := range test.others {
					mc := framework.Get(g, namespaces[name], "cart", &cachev1.Memcached{})
					g.Expect(mc.Status).To(gomega.BeZero(), "the status of a Memcached that isn't watched")
					var deployments appsv1.DeploymentList
					g.Expect(framework.Client.List(context.Background(), &deployments, client.InNamespace(namespaces[name]),
						client.MatchingLabels{"memcached_cr": "cart"})).To(gomega.Succeed())
					g.Expect(deployments.Items).To(gomega.BeEmpty())
				}
			})
			// OLM grants the same rights in the operator's own namespace, where its Lease is.
			foreign := slices.DeleteFunc(slices.Clone(test.others), func(name string) bool { return name == "own" })
			rights(t, namespaces["own"], values(namespaces, test.targets), values(namespaces, foreign))
		})
	}
}

func values(all map[string]string, keys []string) []string {
	var found []string
	for _, key := range keys {
		found = append(found, all[key])
	}
	return found
}

// runsAsOLMInstalledIt looks at what runs: both replicas, under the ServiceAccount that OLM made, with images by digest.
func runsAsOLMInstalledIt(t *testing.T, namespace string) {
	t.Helper()
	g := gomega.NewWithT(t)
	pods := framework.Pods(t, namespace, map[string]string{"control-plane": "controller-manager"})
	g.Expect(pods).To(gomega.HaveLen(2))
	for _, pod := range pods {
		g.Expect(framework.IsReady(pod)).To(gomega.BeTrue(), pod.Name)
		g.Expect(pod.Spec.ServiceAccountName).To(gomega.Equal(deployment))
		account := framework.Get(g, namespace, pod.Spec.ServiceAccountName, &corev1.ServiceAccount{})
		g.Expect(account.OwnerReferences).To(gomega.ContainElement(gomega.HaveField("Kind", v1alpha1.ClusterServiceVersionKind)))
		for _, container := range pod.Spec.Containers {
			g.Expect(container.Image).To(gomega.ContainSubstring("@sha256:"))
		}
	}
}

// rights asks the API server about each of the operator's rights over Memcacheds and what they consist of.
func rights(t *testing.T, namespace string, allowed, denied []string) {
	t.Helper()
	g := gomega.NewWithT(t)
	csv := framework.Get(g, namespace, current.csv(), &v1alpha1.ClusterServiceVersion{})
	asked := 0
	for _, permissions := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
		user := "system:serviceaccount:" + namespace + ":" + permissions.ServiceAccountName
		for attributes := range requests(permissions.Rules) {
			for answer, namespaces := range map[bool][]string{true: allowed, false: denied} {
				for _, attributes.Namespace = range namespaces {
					review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
						User: user, ResourceAttributes: attributes.DeepCopy(),
					}}
					g.Expect(framework.Client.Create(t.Context(), review)).To(gomega.Succeed())
					g.Expect(review.Status.Allowed).To(gomega.Equal(answer), "may %s %+v", user, attributes)
					asked++
				}
			}
		}
	}
	g.Expect(asked).NotTo(gomega.BeZero())
	t.Logf("the operator has each of its rights in %v and none in %v: %d questions to the API server", allowed, denied, asked)
}

// requests are all that the rules allow.
func requests(rules []rbacv1.PolicyRule) iter.Seq[authorizationv1.ResourceAttributes] {
	return func(yield func(authorizationv1.ResourceAttributes) bool) {
		for _, rule := range rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""} // any
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					plain, subresource, _ := strings.Cut(resource, "/")
					for _, verb := range rule.Verbs {
						for _, name := range names {
							if !yield(authorizationv1.ResourceAttributes{
								Group: group, Resource: plain, Subresource: subresource, Verb: verb, Name: name,
							}) {
								return
							}
						}
					}
				}
			}
		}
	}
}
