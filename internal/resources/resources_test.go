// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
)

var update = flag.Bool("update", false, "write the golden files anew")

const defaultImage = "docker.io/library/memcached:1.6.45"

func memcached(spec cachev1.MemcachedSpec) *cachev1.Memcached {
	return &cachev1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop", UID: "c0ffee00-0000-4000-8000-000000000000"},
		Spec:       spec,
	}
}

// A golden file is the whole set of fields that we own. A difference in a file that exists means that the pods of
// every Memcached may be replaced when the operator is upgraded: read it with that in mind.
func TestObjectsAreByteForByteTheGoldenOnes(t *testing.T) {
	kubernetes := platform.Platform{DefaultImage: defaultImage}
	tests := map[string]struct {
		spec      cachev1.MemcachedSpec
		on        platform.Platform
		keptImage string
	}{
		"minimal":        {spec: cachev1.MemcachedSpec{Size: 3}, on: kubernetes},
		"scaled-to-zero": {spec: cachev1.MemcachedSpec{Size: 0}, on: kubernetes},
		"openshift":      {spec: cachev1.MemcachedSpec{Size: 3}, on: platform.Platform{OpenShift: true, DefaultImage: defaultImage}},
		"kept-image":     {spec: cachev1.MemcachedSpec{Size: 3}, on: kubernetes, keptImage: "docker.io/library/memcached:1.6.40"},
		"private-image": {spec: cachev1.MemcachedSpec{
			Size:             3,
			Image:            "registry.example.com/memcached@sha256:0000000000000000000000000000000000000000000000000000000000000000",
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}, {Name: "mirror"}},
		}, on: kubernetes},
		"everything": {spec: everything(t), on: kubernetes},
		"production": {spec: cachev1.MemcachedSpec{
			Size: 6, Memory: resource.MustParse("1Gi"), MaxConnections: 4096,
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
			}},
		}, on: kubernetes},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := For(memcached(test.spec), test.on, test.keptImage)
			var got bytes.Buffer
			for _, object := range []any{set.Service, set.Deployment} {
				document, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(document)
			}

			path := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (go test ./internal/resources -update writes it)", err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// everything is a spec that sets every field.
func everything(t *testing.T) cachev1.MemcachedSpec {
	t.Helper()
	contents, err := os.ReadFile(filepath.Join("..", "..", "api", "v1", "testdata", "everything.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mc := &cachev1.Memcached{}
	if err := yaml.UnmarshalStrict(contents, mc); err != nil {
		t.Fatal(err)
	}
	return mc.Spec
}

func TestImage(t *testing.T) {
	const kept, users = "registry.example.com/memcached:old", "registry.example.com/memcached:mine"
	tests := map[string]struct {
		spec cachev1.MemcachedSpec
		kept string
		want string
	}{
		"a new Memcached gets the operator's default":            {want: defaultImage},
		"Keep keeps what was chosen before":                      {spec: cachev1.MemcachedSpec{ImagePolicy: cachev1.ImagePolicyKeep}, kept: kept, want: kept},
		"without a policy it is Keep":                            {kept: kept, want: kept},
		"Follow takes the operator's default over what was kept": {spec: cachev1.MemcachedSpec{ImagePolicy: cachev1.ImagePolicyFollow}, kept: kept, want: defaultImage},
		"the user's image goes first with Keep":                  {spec: cachev1.MemcachedSpec{Image: users}, kept: kept, want: users},
		"the user's image goes first with Follow":                {spec: cachev1.MemcachedSpec{Image: users, ImagePolicy: cachev1.ImagePolicyFollow}, kept: kept, want: users},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := image(memcached(test.spec), platform.Platform{DefaultImage: defaultImage}, test.kept)
			if got != test.want {
				t.Errorf("image is %q, want %q", got, test.want)
			}
		})
	}
}

func TestKeptImage(t *testing.T) {
	const (
		ours       = "memcached-operator"
		annotation = `"f:metadata":{"f:annotations":{"f:cache.example.com/image":{}}}`
		template   = `"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"memcached\"}":{".":{},"f:name":{},"f:image":{}}}}}}`
	)
	// deployment has other images in the annotation and in the template, and we own the fields.
	deployment := func(fields string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{imageAnnotation: "registry.example.com/memcached:annotation"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: ours, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{" + fields + "}"),
			}},
		}}
		d.Spec.Template.Spec.Containers = []corev1.Container{
			{Name: "injected", Image: "registry.example.com/proxy:1"},
			{Name: containerName, Image: "registry.example.com/memcached:template"},
		}
		return d
	}
	cleared := deployment("")
	cleared.ManagedFields = nil
	twice := deployment(annotation)
	twice.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}}
	tests := map[string]struct {
		deployment *appsv1.Deployment
		want       string
	}{
		"what stands there is kept if nobody can tell who wrote it": {deployment: cleared, want: "registry.example.com/memcached:annotation"},
		"what stands there is kept if a list has a key twice":       {deployment: twice, want: "registry.example.com/memcached:annotation"},
		"it stands in the annotation":                               {deployment: deployment(annotation + "," + template), want: "registry.example.com/memcached:annotation"},
		"an edit of the pod template doesn't count":                 {deployment: deployment(annotation), want: "registry.example.com/memcached:annotation"},
		"an edit of the annotation doesn't count":                   {deployment: deployment(template), want: "registry.example.com/memcached:template"},
		"there is none if both are somebody else's":                 {deployment: deployment(`"f:spec":{"f:replicas":{}}`), want: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := KeptImage(test.deployment, ours); got != test.want {
				t.Errorf("kept image is %q, want %q", got, test.want)
			}
		})
	}
}
