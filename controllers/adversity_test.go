// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// reason of a condition of the Memcached "cart".
func reason(t *testing.T, g gomega.Gomega, namespace, condition string) string {
	t.Helper()
	found := meta.FindStatusCondition(get(t, g, namespace, "cart", &cachev1.Memcached{}).Status.Conditions, condition)
	g.Expect(found).NotTo(gomega.BeNil())
	return found.Reason
}

func TestARefusalIsTriedAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	named := metav1.ObjectMeta{Name: namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no Deployments on Tuesdays"}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        namespace,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
		}},
	}}
	for _, object := range []client.Object{policy, binding} {
		if err := testClient.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	probe := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: namespace}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "probe"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "probe"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
		},
	}}
	eventually(t, func(g gomega.Gomega) { // a policy takes effect a little later
		g.Expect(testClient.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)).To(gomega.MatchError(gomega.ContainSubstring("Tuesdays")))
	})

	startOperator(t, namespace)
	create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	eventually(t, func(g gomega.Gomega) {
		now := get(t, g, namespace, "cart", &cachev1.Memcached{})
		degraded := meta.FindStatusCondition(now.Status.Conditions, cachev1.ConditionDegraded)
		g.Expect(degraded).NotTo(gomega.BeNil())
		g.Expect(degraded.Reason).To(gomega.Equal(cachev1.ReasonApplyRefused))
		g.Expect(degraded.Message).To(gomega.ContainSubstring("no Deployments on Tuesdays"))
	})
	for _, object := range []client.Object{binding, policy} {
		if err := testClient.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		g.Expect(reason(t, g, namespace, cachev1.ConditionDegraded)).To(gomega.Equal(cachev1.ReasonAsExpected))
	}).WithTimeout(90 * time.Second).WithPolling(time.Second).Should(gomega.Succeed())
}

// slowWatch lets the events of Memcacheds come late, as they do from a busy API server.
type slowWatch struct {
	next  http.RoundTripper
	delay time.Duration
}

func (s slowWatch) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err == nil && strings.HasSuffix(request.URL.Path, "/memcacheds") && request.URL.Query().Get("watch") != "" {
		response.Body = slowBody{response.Body, s.delay}
	}
	return response, err
}

type slowBody struct {
	io.ReadCloser
	delay time.Duration
}

func (s slowBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	time.Sleep(s.delay)
	return n, err
}

func TestTheStatusIsRightInTheEndThoughTheCacheLags(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace, func(o *operatorOptions) {
		o.wrap = func(next http.RoundTripper) http.RoundTripper { return slowWatch{next, 500 * time.Millisecond} }
	})
	settled(t, create(t, namespace, cachev1.MemcachedSpec{Size: 1}))
	pod := addPods(t, get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{}), "cart-a")[0]
	isReady := func(g gomega.Gomega) {
		g.Expect(reason(t, g, namespace, cachev1.ConditionReady)).To(gomega.Equal(cachev1.ReasonAllPodsReady))
	}
	eventually(t, isReady)
	time.Sleep(2 * time.Second) // until the cache has seen it

	setReady := func(status corev1.ConditionStatus) {
		pod.Status.Conditions[0].Status = status
		if err := testClient.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	setReady(corev1.ConditionFalse)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(reason(t, g, namespace, cachev1.ConditionReady)).To(gomega.Equal(cachev1.ReasonPodsNotReady))
	})
	setReady(corev1.ConditionTrue) // at once: the cache shows a Memcached that never was unready
	eventually(t, isReady)
}

func TestAStrangerThatComesBetweenTheLookAndTheApplyIsLeftAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before   string // the request that the stranger comes just before
		stranger client.Object
	}{
		"Service":          {"PATCH services", &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}},
		"headless Service": {"PATCH services", &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "theirs"}}}},
		"Deployment": {"PATCH deployments", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "theirs"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "theirs"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs"}}},
			},
		}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			stranger := test.stranger
			stranger.SetName("cart")
			stranger.SetNamespace(namespace)
			of := &requests{}
			of.intercept = func(_ int, request *http.Request, next http.RoundTripper) (*http.Response, error) {
				if request.Method+" "+resourceOf(request.URL.Path) == test.before && stranger.GetUID() == "" {
					if err := testClient.Create(t.Context(), stranger); err != nil {
						return nil, err
					}
				}
				return next.RoundTrip(request)
			}
			startOperator(t, namespace, withRequests(of))
			create(t, namespace, cachev1.MemcachedSpec{Size: 1})
			eventually(t, func(g gomega.Gomega) {
				g.Expect(reason(t, g, namespace, cachev1.ConditionReady)).To(gomega.Equal(cachev1.ReasonNameConflict))
			})
			now := get(t, gomega.NewWithT(t), namespace, "cart", stranger.DeepCopyObject().(client.Object))
			if now.GetResourceVersion() != stranger.GetResourceVersion() {
				t.Error("the stranger was written")
			}
		})
	}
}

func TestALongMessageIsAnnouncedAllTheSame(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	operator := startOperator(t, namespace)
	settled(t, create(t, namespace, cachev1.MemcachedSpec{Size: 1}))
	pod := addPods(t, get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{}), "cart-a")[0]
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/99 nodes are available: " + strings.Repeat("1 node has a taint, ", 100),
	}}
	if err := testClient.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(testClient.List(t.Context(), list, client.InNamespace(namespace))).To(gomega.Succeed())
		list.Items = slices.DeleteFunc(list.Items, func(event eventsv1.Event) bool { return event.Reason != cachev1.ReasonUnschedulable })
		g.Expect(list.Items).To(gomega.HaveLen(1))
		g.Expect(list.Items[0].Action).To(gomega.Equal(cachev1.ConditionDegraded), "the cause, of the two conditions that turned")
	})
	// A second event of the same would be taken for a repetition, and the first one patched with it.
	stays(t, func(g gomega.Gomega) { g.Expect(operator.count("PATCH events")).To(gomega.BeZero()) })
}
