// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// fieldChange is a value of one field of spec, and all that it changes in the Deployment of a Memcached that has the
// defaults and the image of an earlier operator.
type fieldChange struct {
	value   string // in YAML
	changes func(*appsv1.DeploymentSpec)
	// stays says that the change outlasts the field; otherwise, without it all is as before.
	stays bool
}

func fieldChanges() map[string]fieldChange {
	flag := func(flag, value string) func(*appsv1.DeploymentSpec) {
		return func(d *appsv1.DeploymentSpec) {
			command := d.Template.Spec.Containers[0].Command
			command[slices.Index(command, flag)+1] = value
		}
	}
	memory := func(request, limit string) func(*appsv1.DeploymentSpec) {
		return func(d *appsv1.DeploymentSpec) {
			d.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(request)
			d.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
		}
	}
	both := func(first, second func(*appsv1.DeploymentSpec)) func(*appsv1.DeploymentSpec) {
		return func(d *appsv1.DeploymentSpec) { first(d); second(d) }
	}
	pod := func(change func(*corev1.PodTemplateSpec)) func(*appsv1.DeploymentSpec) {
		return func(d *appsv1.DeploymentSpec) { change(&d.Template) }
	}
	image := func(image string) func(*appsv1.DeploymentSpec) {
		return pod(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = image })
	}
	return map[string]fieldChange{
		"size":        {value: "5", changes: func(d *appsv1.DeploymentSpec) { d.Replicas = new(int32(5)) }},
		"image":       {value: "example.com/mine:1", changes: image("example.com/mine:1"), stays: true}, // kept
		"imagePolicy": {value: "Follow", changes: image(defaultImage), stays: true},                     // so is this one
		"imagePullSecrets": {value: "[{name: a}, {name: b}]", changes: pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}
		})},
		"memory":         {value: "1Gi", changes: both(flag("-m", "1024"), memory("1280Mi", "1280Mi"))},
		"maxConnections": {value: "2048", changes: both(flag("-c", "2048"), memory("176Mi", "176Mi"))},
		"threads":        {value: "8", changes: flag("-t", "8")},
		"maxItemSize":    {value: "4Mi", changes: flag("-I", "4096k")},
		"extraArgs": {value: "[-M, -o, idle_timeout=60]", changes: pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Command = append(p.Spec.Containers[0].Command, "-M", "-o", "idle_timeout=60")
		})},
		"resources": {value: "{requests: {memory: 128Mi}, limits: {memory: 1Gi}}", changes: memory("128Mi", "1Gi")},
		"nodeSelector": {value: "{pool: caches}", changes: pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.NodeSelector = map[string]string{"pool": "caches"}
		})},
		"tolerations": {value: "[{key: caches, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]", changes: pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.Tolerations = []corev1.Toleration{{
				Key: "caches", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60)),
			}}
		})},
		"affinity": {value: "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: {}}]}}", changes: pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{}}},
			}}
		})},
		"topologySpreadConstraints": {value: "[{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]", changes: pod(func(p *corev1.PodTemplateSpec) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 2, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: p.Spec.TopologySpreadConstraints[0].LabelSelector,
			}}
		})},
		"priorityClassName": {value: "caches", changes: pod(func(p *corev1.PodTemplateSpec) { p.Spec.PriorityClassName = "caches" })},
		"podLabels":         {value: "{team: shop}", changes: pod(func(p *corev1.PodTemplateSpec) { p.Labels["team"] = "shop" })},
		"podAnnotations":    {value: "{note: mine}", changes: pod(func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"note": "mine"} })},
		"minReadySeconds": {value: "400", changes: func(d *appsv1.DeploymentSpec) {
			d.MinReadySeconds, d.ProgressDeadlineSeconds = 400, new(int32(700))
		}},
	}
}

// Each field has a Memcached of its own here, in a cluster where the operator was upgraded.
func TestEachFieldChangesWhatItIsForAndNothingElse(t *testing.T) {
	t.Parallel()
	tests := fieldChanges()
	var fields []string
	for field := range reflect.TypeFor[cachev1.MemcachedSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(fields)), slices.Sorted(maps.Keys(tests))); diff != "" {
		t.Fatalf("fields of the spec, and of this test (-want +got):\n%s", diff)
	}

	namespace := newNamespace(t)
	earlier := startOperator(t, namespace, withDefaultImage(olderImage))
	for field := range tests {
		mc := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(field), Namespace: namespace}, Spec: cachev1.MemcachedSpec{Size: 3}}
		if err := testClient.Create(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		settled(t, mc)
	}
	earlier.stop()
	operator := startOperator(t, namespace)

	for field, test := range tests {
		name := strings.ToLower(field)
		before := get(t, gomega.NewWithT(t), namespace, name, &appsv1.Deployment{})
		changed := before.DeepCopy()
		test.changes(&changed.Spec)
		if cmp.Equal(before.Spec, changed.Spec) {
			t.Fatalf("%s: the test expects no change", field)
		}
		becomes := func(want appsv1.DeploymentSpec) {
			t.Helper()
			eventually(t, func(g gomega.Gomega) {
				g.Expect(cmp.Diff(want, get(t, g, namespace, name, &appsv1.Deployment{}).Spec)).To(gomega.BeEmpty(), field)
			})
		}
		setField(t, namespace, name, field, test.value)
		becomes(changed.Spec)
		if field == "size" {
			continue // required
		}
		setField(t, namespace, name, field, "null")
		if test.stays {
			becomes(changed.Spec)
		} else {
			becomes(before.Spec)
		}
	}
	applies := operator.count("PATCH deployments")
	stays(t, func(g gomega.Gomega) { g.Expect(operator.count("PATCH deployments")).To(gomega.Equal(applies)) })
}

// The CRD takes what only a pod's own rules find wrong. The pods that run are left as they are, and the condition quotes
// what the API server says.
func TestWhatIsRefusedInAPodReachesTheCondition(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	for name, test := range map[string]struct{ field, value, want string }{
		"affinity":    {"affinity", "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: '', labelSelector: {}}]}}", "topologyKey: Required value"},
		"annotation":  {"podAnnotations", "{'no key': a}", "spec.template.annotations"},
		"class":       {"priorityClassName", "UPPER", "spec.template.spec.priorityClassName"},
		"constraint":  {"topologySpreadConstraints", "[{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]", "maxSkew"},
		"label":       {"podLabels", "{team: 'a b'}", "spec.template.labels"},
		"node-labels": {"nodeSelector", "{pool: 'a b'}", "a b"},
		"request":     {"resources", "{requests: {memory: 1Gi}}", "less than or equal to memory limit of 160Mi"},
		"toleration":  {"tolerations", "[{}]", "tolerations[0].operator"},
	} {
		mc := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: cachev1.MemcachedSpec{Size: 3}}
		if err := testClient.Create(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		settled(t, mc)
		before := get(t, gomega.NewWithT(t), namespace, name, &appsv1.Deployment{})
		degraded := func(g gomega.Gomega) *metav1.Condition {
			now := get(t, g, namespace, name, &cachev1.Memcached{})
			return meta.FindStatusCondition(now.Status.Conditions, cachev1.ConditionDegraded)
		}

		setField(t, namespace, name, test.field, test.value)
		eventually(t, func(g gomega.Gomega) {
			g.Expect(degraded(g).Reason).To(gomega.Equal(cachev1.ReasonApplyRefused), name)
			g.Expect(degraded(g).Message).To(gomega.ContainSubstring(test.want))
			g.Expect(get(t, g, namespace, name, &appsv1.Deployment{}).Generation).To(gomega.Equal(before.Generation))
		})
		setField(t, namespace, name, test.field, "null")
		eventually(t, func(g gomega.Gomega) {
			g.Expect(degraded(g).Reason).To(gomega.Equal(cachev1.ReasonAsExpected), name)
		})
	}
}

// setField writes one field of spec as a person would; null removes it.
func setField(t *testing.T, namespace, name, field, value string) {
	t.Helper()
	patch, err := yaml.YAMLToJSON([]byte("{spec: {" + field + ": " + value + "}}"))
	if err != nil {
		t.Fatal(err)
	}
	mc := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := testClient.Patch(t.Context(), mc, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}
