// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
	"github.com/example-inc/memcached-operator/internal/resources"
	"github.com/example-inc/memcached-operator/internal/status"
)

func TestANewMemcachedCostsFewRequests(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	// Long enough for all pods to appear in one burst, as slow as this machine may be.
	operator := startOperator(t, namespace, withSettle(3*time.Second))
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 3})
	settled(t, mc)

	deployment := get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{})
	addPods(t, deployment, "cart-c", "cart-a", "cart-b")
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 3, UpdatedReplicas: 3}
	if err := testClient.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) {
		now := get(t, g, namespace, "cart", &cachev1.Memcached{})
		g.Expect(now.Status.Nodes).To(gomega.Equal([]string{"cart-a", "cart-b", "cart-c"}))
		g.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, cachev1.ConditionReady)).To(gomega.BeTrue())
		g.Expect(meta.IsStatusConditionFalse(now.Status.Conditions, cachev1.ConditionProgressing)).To(gomega.BeTrue())
	})
	for kind, most := range map[string]int{
		"GET deployments": 1, "PATCH deployments": 1,
		"GET services": 1, "PATCH services": 1,
		"PATCH memcacheds/status": 3,
	} {
		if got := operator.count(kind); got > most || got == 0 {
			t.Errorf("%q was sent %d times, want 1 to %d", kind, got, most)
		}
	}
}

func TestAnUnchangedWorldCausesNoWrite(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	first := startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)
	addPods(t, get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{}), "cart-a")
	eventually(t, func(g gomega.Gomega) {
		now := get(t, g, namespace, "cart", &cachev1.Memcached{})
		g.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, cachev1.ConditionReady)).To(gomega.BeTrue())
		g.Expect(first.count("POST events")).To(gomega.Equal(1), "events are sent a little later")
	})

	before := len(first.writes())
	touchChildren(t, namespace)
	stays(t, func(g gomega.Gomega) { g.Expect(first.writes()[before:]).To(gomega.BeEmpty()) })
	first.stop()

	second := startOperator(t, namespace)
	if !second.cache.WaitForCacheSync(t.Context()) {
		t.Fatal("no cache")
	}
	touchChildren(t, namespace)
	stays(t, func(g gomega.Gomega) { g.Expect(second.writes()).To(gomega.BeEmpty()) })
}

// touchChildren changes what is none of our business: it wakes the reconciler and must not make it write.
func touchChildren(t *testing.T, namespace string) {
	t.Helper()
	for _, object := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		before := get(t, gomega.NewWithT(t), namespace, "cart", object)
		touched := before.DeepCopyObject().(client.Object)
		annotations := maps.Clone(before.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["example.com/touched"] += "again "
		touched.SetAnnotations(annotations)
		if err := testClient.Patch(t.Context(), touched, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManualEditsAreHealed(t *testing.T) {
	t.Parallel()
	editDeployment := func(edit func(*appsv1.Deployment)) func(client.Object) {
		return func(o client.Object) { edit(o.(*appsv1.Deployment)) }
	}
	editService := func(edit func(*corev1.Service)) func(client.Object) {
		return func(o client.Object) { edit(o.(*corev1.Service)) }
	}
	tests := map[string]struct {
		object client.Object
		edit   func(client.Object)
	}{
		"replicas":         {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })},
		"image":            {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx" })},
		"command":          {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = []string{"memcached"} })},
		"probe removed":    {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].ReadinessProbe = nil })},
		"strategy":         {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1)) })},
		"user":             {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.SecurityContext.RunAsUser = new(int64(1)) })},
		"pod label":        {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { delete(d.Spec.Template.Labels, "app.kubernetes.io/name") })},
		"service selector": {&corev1.Service{}, editService(func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "nginx"} })},
		"service port":     {&corev1.Service{}, editService(func(s *corev1.Service) { s.Spec.Ports[0].Port = 80 })},
		"container port":   {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 80 })},
		"a key twice in a list": {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
		})},
		"one label": {&corev1.Service{}, editService(func(s *corev1.Service) { s.Labels["app.kubernetes.io/component"] = "database" })},
		"the cache's label": {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) {
			delete(d.Labels, "app.kubernetes.io/managed-by")
		})},
		"all labels of the Deployment": {&appsv1.Deployment{}, editDeployment(func(d *appsv1.Deployment) { d.Labels = nil })},
		"all labels of the Service":    {&corev1.Service{}, editService(func(s *corev1.Service) { s.Labels = nil })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			operator := startOperator(t, namespace)
			settled(t, create(t, namespace, cachev1.MemcachedSpec{Size: 2}))

			object := get(t, gomega.NewWithT(t), namespace, "cart", test.object)
			want := contents(object)
			test.edit(object)
			if cmp.Equal(want, contents(object)) {
				t.Fatal("the edit changes nothing")
			}
			if err := testClient.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			eventually(t, func(g gomega.Gomega) {
				g.Expect(cmp.Diff(want, contents(get(t, g, namespace, "cart", test.object.DeepCopyObject().(client.Object))))).To(gomega.BeEmpty())
			})
			time.Sleep(3 * testSettle) // for the pass that the healing wakes
			healed := len(operator.writes())
			stays(t, func(g gomega.Gomega) { g.Expect(operator.writes()[healed:]).To(gomega.BeEmpty()) })
			mc := get(t, gomega.NewWithT(t), namespace, "cart", &cachev1.Memcached{})
			if ready := meta.FindStatusCondition(mc.Status.Conditions, cachev1.ConditionReady); ready.Reason == cachev1.ReasonNameConflict {
				t.Errorf("our own child was taken for somebody else's: %s", ready.Message)
			}
		})
	}
}

// contents are what a person may edit of an object.
func contents(object client.Object) any {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return []any{maps.Clone(object.Labels), object.Spec.DeepCopy()}
	case *corev1.Service:
		return []any{maps.Clone(object.Labels), object.Spec.DeepCopy()}
	}
	panic(fmt.Sprintf("no contents of a %T", object))
}

func TestFieldsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 2})
	settled(t, mc)

	deployment := get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{})
	deployment.Annotations["example.com/team"] = "shop"
	deployment.Spec.Template.Annotations = map[string]string{"example.com/restartedAt": "noon"}
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TZ", Value: "UTC"}}
	if err := testClient.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.Size = 5 }) // makes the operator write
	eventually(t, func(g gomega.Gomega) {
		now := get(t, g, namespace, "cart", &appsv1.Deployment{})
		g.Expect(*now.Spec.Replicas).To(gomega.BeEquivalentTo(5))
		g.Expect(now.Annotations).To(gomega.HaveKeyWithValue("example.com/team", "shop"))
		g.Expect(now.Spec.Template.Annotations).To(gomega.HaveKeyWithValue("example.com/restartedAt", "noon"))
		g.Expect(now.Spec.Template.Spec.Containers[0].Env).To(gomega.HaveLen(1))
	})
}

func TestOptionalFieldsThatAreRemovedAreRemovedFromTheDeployment(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}})
	eventually(t, func(g gomega.Gomega) {
		g.Expect(get(t, g, namespace, "cart", &appsv1.Deployment{}).Spec.Template.Spec.ImagePullSecrets).To(gomega.HaveLen(1))
	})
	changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.ImagePullSecrets = nil })
	eventually(t, func(g gomega.Gomega) {
		g.Expect(get(t, g, namespace, "cart", &appsv1.Deployment{}).Spec.Template.Spec.ImagePullSecrets).To(gomega.BeEmpty())
	})
}

func TestForeignObjectsOfTheSameNameAreLeftAlone(t *testing.T) {
	t.Parallel()
	deployment := func() client.Object {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "theirs"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "theirs"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs"}}},
			},
		}}
	}
	service := func() client.Object {
		return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	unlabelled := func(client.Object) {}
	labelled := func(o client.Object) { o.SetLabels(ownLabels()) }
	controlled := func(o client.Object) {
		labelled(o)
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: cachev1.GroupVersion.String(), Kind: "Memcached", Name: "other", UID: "another", Controller: new(true),
		}})
	}
	tests := map[string]struct {
		stranger func() client.Object
		dress    func(client.Object)
	}{
		"Deployment without labels":      {deployment, unlabelled},
		"Deployment with all our labels": {deployment, labelled},
		"Deployment with a key twice in a list": {deployment, func(o client.Object) {
			o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
		}},
		"Deployment that another Memcached controls":    {deployment, controlled},
		"Service without labels":                        {service, unlabelled},
		"Service with all our labels":                   {service, labelled},
		"Service that another Memcached controls":       {service, controlled},
		"Deployment of an earlier Memcached, same name": {deployment, func(o client.Object) { controlled(o); o.GetOwnerReferences()[0].Name = "cart" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			stranger := test.stranger()
			stranger.SetName("cart")
			stranger.SetNamespace(namespace)
			test.dress(stranger)
			if err := testClient.Create(t.Context(), stranger); err != nil {
				t.Fatal(err)
			}
			version := stranger.GetResourceVersion()
			operator := startOperator(t, namespace)
			create(t, namespace, cachev1.MemcachedSpec{Size: 3})
			eventually(t, func(g gomega.Gomega) {
				ready := meta.FindStatusCondition(get(t, g, namespace, "cart", &cachev1.Memcached{}).Status.Conditions, cachev1.ConditionReady)
				g.Expect(ready).NotTo(gomega.BeNil())
				g.Expect(ready.Status).To(gomega.Equal(metav1.ConditionFalse))
				g.Expect(ready.Reason).To(gomega.Equal(cachev1.ReasonNameConflict))
			})
			stays(t, func(g gomega.Gomega) {
				g.Expect(get(t, g, namespace, "cart", stranger).GetResourceVersion()).To(gomega.Equal(version))
				g.Expect(operator.count("PATCH deployments")+operator.count("PATCH services")).To(gomega.BeZero(), "nothing is half-made")
			})

			if err := testClient.Delete(t.Context(), stranger); err != nil {
				t.Fatal(err)
			}
			gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
				now := get(t, g, namespace, "cart", &cachev1.Memcached{})
				g.Expect(meta.FindStatusCondition(now.Status.Conditions, cachev1.ConditionReady).Reason).To(gomega.Equal(cachev1.ReasonPodsNotReady))
				g.Expect(metav1.IsControlledBy(get(t, g, namespace, "cart", &appsv1.Deployment{}), now)).To(gomega.BeTrue())
				g.Expect(metav1.IsControlledBy(get(t, g, namespace, "cart", &corev1.Service{}), now)).To(gomega.BeTrue())
			}).WithTimeout(2 * conflictRetry).WithPolling(500 * time.Millisecond).Should(gomega.Succeed())
		})
	}
}

func TestAnObjectThatTookThePlaceOfOursIsNotWritten(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	reconciler := &MemcachedReconciler{Client: testClient, APIReader: testClient}
	ours := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: "cart", Namespace: namespace, UID: "gone",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(mc, cachev1.GroupVersion.WithKind("Memcached"))},
	}}
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: namespace}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if err := testClient.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	// The cache lags: it still shows ours.
	err := reconciler.converge(t.Context(), mc, &status.Observed{Service: ours}, resources.For(mc, reconciler.Platform, defaultImage))
	if !apierrors.IsConflict(err) {
		t.Errorf("converging gave %v, want a conflict", err)
	}
	now := get(t, gomega.NewWithT(t), namespace, "cart", &corev1.Service{})
	if now.ResourceVersion != theirs.ResourceVersion {
		t.Error("the stranger was written")
	}
}

func TestOnlyPodsOfOurReplicaSetsCount(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	operator := startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)
	addPods(t, get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{}), "cart-a")

	foreign := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart-foreign", UID: "foreign", Controller: new(true)}
	addPod(t, namespace, "dressed-up", ownLabels(), nil)
	addPod(t, namespace, "of-a-foreign-replicaset", ownLabels(), foreign)
	for i := range 1000 {
		var labels map[string]string
		if i%10 == 0 {
			labels = map[string]string{"app": "memcached"}
		}
		addPod(t, namespace, fmt.Sprintf("foreign-%d", i), labels, nil)
	}

	check := func(g gomega.Gomega) {
		g.Expect(get(t, g, namespace, "cart", mc).Status.Nodes).To(gomega.Equal([]string{"cart-a"}))
	}
	eventually(t, check)
	stays(t, check)
	cached := &corev1.PodList{}
	if err := operator.cache.List(t.Context(), cached); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range cached.Items {
		names = append(names, pod.Name)
		if len(pod.Spec.Containers) > 0 || len(pod.ManagedFields) > 0 {
			t.Errorf("the cache holds more of pod %q than is read", pod.Name)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"cart-a", "dressed-up", "of-a-foreign-replicaset"}, names); diff != "" {
		t.Errorf("pods in the cache (-want +got):\n%s", diff)
	}
}

func TestStatusEditedByHandIsWrittenAnew(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)
	want := get(t, gomega.NewWithT(t), namespace, "cart", mc).Status.DeepCopy()

	edited := get(t, gomega.NewWithT(t), namespace, "cart", mc)
	edited.Status.Nodes = []string{"nonsense"}
	edited.Status.Conditions = append(edited.Status.Conditions, metav1.Condition{
		Type: "Nonsense", Status: metav1.ConditionTrue, Reason: "ByHand", LastTransitionTime: metav1.Now(),
	})
	if err := testClient.Status().Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) {
		g.Expect(cmp.Diff(*want, get(t, g, namespace, "cart", &cachev1.Memcached{}).Status)).To(gomega.BeEmpty())
	})
}

func TestAPodCountsWhateverLabelsItLostThatDoNotSelectIt(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)
	pod := addPods(t, get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{}), "cart-a")[0]
	counts := func(g gomega.Gomega) {
		g.Expect(get(t, g, namespace, "cart", mc).Status.Nodes).To(gomega.Equal([]string{"cart-a"}))
	}
	eventually(t, counts)
	before := pod.DeepCopy()
	delete(pod.Labels, "app.kubernetes.io/managed-by")
	if err := testClient.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	stays(t, counts)
}

func TestScalingToZero(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)
	deployment := get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{})
	pods := addPods(t, deployment, "cart-a")
	eventually(t, func(g gomega.Gomega) {
		g.Expect(get(t, g, namespace, "cart", mc).Status.Nodes).To(gomega.HaveLen(1))
	})

	changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.Size = 0 })
	if err := testClient.Delete(t.Context(), pods[0], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) {
		now := get(t, g, namespace, "cart", &cachev1.Memcached{})
		g.Expect(now.Status.Nodes).To(gomega.And(gomega.BeEmpty(), gomega.Not(gomega.BeNil())))
		g.Expect(meta.FindStatusCondition(now.Status.Conditions, cachev1.ConditionReady).Reason).To(gomega.Equal(cachev1.ReasonScaledToZero))
		g.Expect(*get(t, g, namespace, "cart", &appsv1.Deployment{}).Spec.Replicas).To(gomega.BeZero())
	})
}

func TestImagePolicyAcrossAnUpgradeOfTheOperator(t *testing.T) {
	t.Parallel()
	runs := func(g gomega.Gomega, namespace, image string) {
		t.Helper()
		g.Expect(get(t, g, namespace, "cart", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image).To(gomega.Equal(image))
	}
	t.Run("Keep", func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		older := startOperator(t, namespace, withDefaultImage(olderImage))
		mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
		settled(t, mc)
		older.stop()

		newer := startOperator(t, namespace)
		eventually(t, func(g gomega.Gomega) {
			update := meta.FindStatusCondition(get(t, g, namespace, "cart", mc).Status.Conditions, cachev1.ConditionUpdateAvailable)
			g.Expect(update.Reason).To(gomega.Equal(cachev1.ReasonDefaultDiffers))
		})
		runs(gomega.NewWithT(t), namespace, olderImage)
		if got := newer.count("PATCH deployments"); got != 0 {
			t.Errorf("the upgraded operator wrote the Deployment %d times", got)
		}

		// What is kept isn't the edit of somebody else, labels or no labels.
		for _, edit := range []func(*appsv1.Deployment){
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image, d.Labels = "nginx", nil },
			func(d *appsv1.Deployment) { d.Annotations["cache.example.com/image"] = "nginx" },
			func(d *appsv1.Deployment) { delete(d.Annotations, "cache.example.com/image") },
			func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{{}} },
		} {
			want := get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{})
			edited := want.DeepCopy()
			edit(edited)
			if err := testClient.Update(t.Context(), edited); err != nil {
				t.Fatal(err)
			}
			eventually(t, func(g gomega.Gomega) {
				runs(g, namespace, olderImage)
				now := get(t, g, namespace, "cart", &appsv1.Deployment{})
				g.Expect(now.Labels).To(gomega.Equal(want.Labels))
				g.Expect(now.Annotations).To(gomega.HaveKeyWithValue("cache.example.com/image", olderImage))
			})
		}

		changeSpec(t, mc, func(spec *cachev1.MemcachedSpec) { spec.ImagePolicy = cachev1.ImagePolicyFollow })
		eventually(t, func(g gomega.Gomega) {
			runs(g, namespace, defaultImage)
			g.Expect(meta.IsStatusConditionFalse(get(t, g, namespace, "cart", mc).Status.Conditions, cachev1.ConditionUpdateAvailable)).To(gomega.BeTrue())
		})
	})
	t.Run("Follow", func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		older := startOperator(t, namespace, withDefaultImage(olderImage))
		settled(t, create(t, namespace, cachev1.MemcachedSpec{Size: 1, ImagePolicy: cachev1.ImagePolicyFollow}))
		runs(gomega.NewWithT(t), namespace, olderImage)
		older.stop()
		startOperator(t, namespace)
		eventually(t, func(g gomega.Gomega) { runs(g, namespace, defaultImage) })
	})
}

func TestOnlyWatchedNamespacesAreServed(t *testing.T) {
	t.Parallel()
	watched, other := newNamespace(t), newNamespace(t)
	startOperator(t, watched)
	create(t, other, cachev1.MemcachedSpec{Size: 1})
	settled(t, create(t, watched, cachev1.MemcachedSpec{Size: 1}))
	stays(t, func(g gomega.Gomega) {
		deployments := &appsv1.DeploymentList{}
		g.Expect(testClient.List(t.Context(), deployments, client.InNamespace(other))).To(gomega.Succeed())
		g.Expect(deployments.Items).To(gomega.BeEmpty())
	})
}

func TestAMemcachedThatIsBeingDeletedGetsNothing(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	operator := startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)
	if err := testClient.Delete(t.Context(), mc, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	before := len(operator.writes())
	if err := testClient.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: namespace}}); err != nil {
		t.Fatal(err)
	}
	stays(t, func(g gomega.Gomega) { g.Expect(operator.writes()[before:]).To(gomega.BeEmpty()) })
}

func TestATerminatingNamespaceIsNoError(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	if err := testClient.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	reconciler := &MemcachedReconciler{Client: testClient, APIReader: testClient, Platform: platform.Platform{DefaultImage: defaultImage}}
	if _, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(mc)}); err != nil {
		t.Errorf("reconciling gave %v, want no error", err)
	}
}

func TestEventsTellOfTransitionsOnly(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)
	pods := addPods(t, get(t, gomega.NewWithT(t), namespace, "cart", &appsv1.Deployment{}), "cart-a")
	reasons := func(g gomega.Gomega) map[string]int {
		list := &eventsv1.EventList{}
		g.Expect(testClient.List(t.Context(), list, client.InNamespace(namespace))).To(gomega.Succeed())
		counts := map[string]int{}
		for _, event := range list.Items {
			counts[event.Type+" "+event.Reason]++
		}
		return counts
	}
	want := map[string]int{"Normal AllPodsReady": 1}
	eventually(t, func(g gomega.Gomega) { g.Expect(reasons(g)).To(gomega.Equal(want)) })

	pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
	if err := testClient.Status().Update(t.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	want["Warning PodsNotReady"] = 1
	eventually(t, func(g gomega.Gomega) { g.Expect(reasons(g)).To(gomega.Equal(maps.Clone(want))) })
	stays(t, func(g gomega.Gomega) { g.Expect(reasons(g)).To(gomega.Equal(want)) })
}
