// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// None of these tests is parallel: operator-lib reads the environment, and the file that is stood in for here.
//
//go:linkname readNamespace github.com/operator-framework/operator-lib/conditions.readNamespace
var readNamespace func() (string, error)

// csvName is what OLM names an operator's ClusterServiceVersion, OperatorCondition, and what goes with it.
const csvName = "memcached-operator.v0.1.0"

// operatorUser may do what the operator's role says, and what OLM adds to it.
const operatorUser = "system:serviceaccount:operators:memcached-operator"

func asOperatorUser(o *operatorOptions) { o.user = operatorUser }

func elected(o *operatorOptions) { o.elected = true }

// underOLM makes a namespace in which operators run as OLM lets them, and returns its name.
func underOLM(t *testing.T) string {
	t.Helper()
	namespace := newNamespace(t)
	inPodOf(t, func() (string, error) { return namespace, nil })

	named := metav1.ObjectMeta{Namespace: namespace, Name: csvName}
	of := &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, ResourceNames: []string{csvName},
		Verbs: []string{"get", "update", "patch"},
	}}}
	ours := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"}}
	for _, file := range []string{"role.yaml", "leader_election_role.yaml"} {
		contents, err := os.ReadFile(filepath.Join("..", "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{} // a Role has nothing that it lacks
		if err := yaml.Unmarshal(contents, role); err != nil {
			t.Fatal(err)
		}
		ours.Rules = append(ours.Rules, role.Rules...)
	}
	for _, role := range []*rbacv1.Role{of, ours} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: role.ObjectMeta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
		}
		for _, object := range []client.Object{role, binding} {
			if err := testClient.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	return namespace
}

// inPodOf sets up what operator-lib finds in a pod that OLM made in the namespace.
func inPodOf(t *testing.T, namespace func() (string, error)) {
	t.Helper()
	t.Setenv(operatorConditionName, csvName)
	before := readNamespace
	readNamespace = namespace
	t.Cleanup(func() { readNamespace = before })
}

// createOperatorCondition does as OLM does, but for what an earlier leader may have left in it.
func createOperatorCondition(t *testing.T, namespace string, left ...metav1.Condition) {
	t.Helper()
	operatorCondition := &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: csvName},
		Spec:       operatorsv2.OperatorConditionSpec{Deployments: []string{"memcached-operator-controller-manager"}, Conditions: left},
	}
	if err := testClient.Create(t.Context(), operatorCondition); err != nil {
		t.Fatal(err)
	}
}

// upgradeable waits until OLM is told so, by a message that contains the text.
func upgradeable(t *testing.T, namespace string, want metav1.ConditionStatus, text string) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		now := get(t, g, namespace, csvName, &operatorsv2.OperatorCondition{})
		condition := meta.FindStatusCondition(now.Spec.Conditions, operatorsv2.Upgradeable)
		g.Expect(condition).NotTo(gomega.BeNil())
		g.Expect(condition.Status).To(gomega.Equal(want), condition.Message)
		g.Expect(condition.Message).To(gomega.ContainSubstring(text))
	})
}

// rollOut does what the Deployment's controller would: its status is that, for its current generation.
func rollOut(t *testing.T, namespace string, status appsv1.DeploymentStatus, progressing string) {
	t.Helper()
	deployment := get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{})
	status.ObservedGeneration = deployment.Generation
	status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: progressing,
	}}
	deployment.Status = status
	if err := testClient.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
}

// changeImage begins a rollout, which gets as far as the API server.
func changeImage(t *testing.T, mc *cachev1.Memcached, image string) {
	t.Helper()
	changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.Image = image })
	eventually(t, func(g gomega.Gomega) {
		deployment := get(t, g, mc.Namespace, mc.Name, &appsv1.Deployment{})
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal(image))
	})
}

var (
	oneOfOne  = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1}
	noneOfOne = appsv1.DeploymentStatus{Replicas: 1}
)

func TestUpgradesAreHeldWhileARolloutMakesProgress(t *testing.T) {
	namespace := underOLM(t)
	createOperatorCondition(t, namespace)
	operator := startOperator(t, namespace, asOperatorUser)
	upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")

	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")
	settled(t, mc)
	pod := addPods(t, get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{}), "cart-a")[0]
	rollOut(t, namespace, oneOfOne, "NewReplicaSetAvailable")
	upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")

	t.Run("an administrator's override stays", func(t *testing.T) {
		// As docs/installing.md says it.
		override := `{"spec": {"overrides": [{"type": "Upgradeable", "status": "True", "reason": "Override", "message": "Approved by me"}]}}`
		operatorCondition := get(t, gomega.NewWithT(t), namespace, csvName, &operatorsv2.OperatorCondition{})
		if err := testClient.Patch(t.Context(), operatorCondition, client.RawPatch(types.MergePatchType, []byte(override))); err != nil {
			t.Fatal(err)
		}
		want := operatorCondition.Spec

		changeImage(t, mc, "memcached:2")
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")
		now := get(t, gomega.NewWithT(t), namespace, csvName, &operatorsv2.OperatorCondition{}).Spec
		now.Conditions, want.Conditions = nil, nil
		if diff := cmp.Diff(want, now); diff != "" {
			t.Errorf("what isn't ours (-want +got):\n%s", diff)
		}
	})

	t.Run("a rollout that can't go on holds nothing", func(t *testing.T) {
		rollOut(t, namespace, noneOfOne, "ReplicaSetUpdated")
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "memcached", Image: "memcached:2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
		if err := testClient.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")

		pod.Status.ContainerStatuses = nil
		if err := testClient.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")
		rollOut(t, namespace, noneOfOne, "ProgressDeadlineExceeded")
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")
	})

	t.Run("scaling holds nothing", func(t *testing.T) {
		rollOut(t, namespace, oneOfOne, "NewReplicaSetAvailable")
		changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
		eventually(t, func(g gomega.Gomega) {
			g.Expect(*get(t, g, namespace, "cart", &appsv1.Deployment{}).Spec.Replicas).To(gomega.BeEquivalentTo(2))
		})
		rollOut(t, namespace, oneOfOne, "NewReplicaSetAvailable")
		eventually(t, func(g gomega.Gomega) {
			g.Expect(reason(t, g, namespace, cachev1.ConditionProgressing)).To(gomega.Equal(cachev1.ReasonAdjusting))
		})
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")
	})

	t.Run("a Service that somebody else changes holds nothing", func(t *testing.T) {
		settled(t, mc)
		before := operator.count("GET operatorconditions")
		for range 5 {
			service := get(t, gomega.NewWithT(t), namespace, "cart", &corev1.Service{})
			service.Spec.Ports[0].TargetPort = intstr.FromInt32(1)
			if err := testClient.Update(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			eventually(t, func(g gomega.Gomega) {
				g.Expect(get(t, g, namespace, "cart", &corev1.Service{}).Spec.Ports[0].TargetPort).NotTo(gomega.Equal(intstr.FromInt32(1)))
			})
		}
		stays(t, func(g gomega.Gomega) { g.Expect(operator.count("GET operatorconditions")).To(gomega.Equal(before)) })
	})

	t.Run("nothing is asked while nothing turns", func(t *testing.T) {
		settled(t, mc)
		before := operator.count("GET operatorconditions")
		changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.ImagePolicy = cachev1.ImagePolicyFollow })
		if err := testClient.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		stays(t, func(g gomega.Gomega) { g.Expect(operator.count("GET operatorconditions")).To(gomega.Equal(before)) })
		g := gomega.NewWithT(t)
		g.Expect(get(t, g, namespace, "cart", &cachev1.Memcached{}).Status.Nodes).To(gomega.BeEmpty(), "the status was written meanwhile")
	})

	t.Run("a deleted Memcached holds nothing", func(t *testing.T) {
		finalizers := func(patch string) {
			t.Helper()
			if err := testClient.Patch(t.Context(), mc, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Fatal(err)
			}
		}
		changeImage(t, mc, "memcached:3")
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")
		finalizers(`{"metadata": {"finalizers": ["example.com/wait"]}}`) // as with foreground deletion
		if err := testClient.Delete(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")
		finalizers(`{"metadata": {"finalizers": null}}`)

		again := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "again"}, Spec: cachev1.MemcachedSpec{Size: 1}}
		if err := testClient.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/again")
		if err := testClient.Delete(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")
	})
}

func TestALeaderFindsWhatAnotherLeft(t *testing.T) {
	left := metav1.Condition{
		Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "RollingOut", Message: "of a leader that died", LastTransitionTime: metav1.Now(),
	}
	t.Run("and mends it, though no Memcached is left", func(t *testing.T) {
		namespace := underOLM(t)
		createOperatorCondition(t, namespace, left)
		startOperator(t, namespace, asOperatorUser)
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")
	})

	t.Run("and leaves it, if it is right", func(t *testing.T) {
		namespace := underOLM(t)
		createOperatorCondition(t, namespace)
		first := startOperator(t, namespace, asOperatorUser)
		settled(t, create(t, namespace, cachev1.MemcachedSpec{Size: 1}))
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")
		first.stop()

		want := get(t, gomega.NewWithT(t), namespace, csvName, &operatorsv2.OperatorCondition{})
		second := startOperator(t, namespace, asOperatorUser)
		eventually(t, func(g gomega.Gomega) { g.Expect(second.count("GET operatorconditions")).To(gomega.Equal(1)) })
		stays(t, func(g gomega.Gomega) { g.Expect(second.writes()).To(gomega.BeEmpty()) })
		if diff := cmp.Diff(want, get(t, gomega.NewWithT(t), namespace, csvName, &operatorsv2.OperatorCondition{})); diff != "" {
			t.Errorf("it changed (-before +after):\n%s", diff)
		}
	})

	t.Run("and until it leads does nothing", func(t *testing.T) {
		namespace := underOLM(t)
		createOperatorCondition(t, namespace)
		leader := startOperator(t, namespace, asOperatorUser, elected)
		mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")

		follower := startOperator(t, namespace, asOperatorUser, elected)
		if !follower.cache.WaitForCacheSync(t.Context()) {
			t.Fatal("no cache")
		}
		changeImage(t, mc, "memcached:2")
		stays(t, func(g gomega.Gomega) { g.Expect(follower.count("GET operatorconditions")).To(gomega.BeZero()) })
		leader.stop()
		if err := testClient.Delete(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")
		if follower.count("PUT operatorconditions") == 0 {
			t.Error("it wasn't the follower that wrote")
		}
	})
}

func TestOLMIsToldLaterWhatItCannotBeToldNow(t *testing.T) {
	t.Run("without an OperatorCondition", func(t *testing.T) {
		namespace := underOLM(t)
		operator := startOperator(t, namespace, asOperatorUser)
		mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
		settled(t, mc) // that goes on meanwhile
		eventually(t, func(g gomega.Gomega) {
			g.Expect(operator.count("GET operatorconditions")).To(gomega.BeNumerically(">", 2))
		})
		createOperatorCondition(t, namespace)
		upgradeable(t, namespace, metav1.ConditionFalse, namespace+"/cart")
	})

	t.Run("when the API server fails to write", func(t *testing.T) {
		namespace := underOLM(t)
		createOperatorCondition(t, namespace)
		flaky := &requests{}
		flaky.intercept = func(_ int, request *http.Request, next http.RoundTripper) (*http.Response, error) {
			if request.Method == http.MethodPut && flaky.count("PUT operatorconditions") < 3 {
				return nil, errors.New("connection lost")
			}
			return next.RoundTrip(request)
		}
		startOperator(t, namespace, asOperatorUser, withRequests(flaky))
		upgradeable(t, namespace, metav1.ConditionTrue, "no rollout")
	})
}

func TestWithoutOLMNothingIsAsked(t *testing.T) {
	namespace := underOLM(t)
	createOperatorCondition(t, namespace)
	t.Setenv(operatorConditionName, "")
	operator := startOperator(t, namespace, asOperatorUser)
	settled(t, create(t, namespace, cachev1.MemcachedSpec{Size: 1}))
	stays(t, func(g gomega.Gomega) { g.Expect(operator.count("GET operatorconditions")).To(gomega.BeZero()) })
	if conditions := get(t, gomega.NewWithT(t), namespace, csvName, &operatorsv2.OperatorCondition{}).Spec.Conditions; len(conditions) > 0 {
		t.Errorf("it has %+v", conditions)
	}
}

func TestAnOperatorConditionOutsideOfAPodIsAnError(t *testing.T) {
	inPodOf(t, func() (string, error) { return "", errors.New("no such file") })
	mgr, err := ctrl.NewManager(testConfig, ctrl.Options{Scheme: testScheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	err = (&UpgradeableReconciler{Reader: mgr.GetClient()}).SetupWithManager(mgr)
	if err == nil || !strings.Contains(err.Error(), operatorConditionName) || !strings.Contains(err.Error(), csvName) || !strings.Contains(err.Error(), "unset it") {
		t.Errorf("the error is %v, want one that names the variable, its value and a remedy", err)
	}
}
