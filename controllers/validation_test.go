// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// The API server itself refuses what makes no sense, with a message that tells what to do.
func TestTheAPIServerRefusesBadInput(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const long = "abcdefghij-abcdefghij-abcdefghij-abcdefghij-abcdefghij-abcdefghi" // 64 characters
	tests := map[string]struct {
		name string
		spec string
		want []string
	}{
		"size below zero":            {spec: "{size: -1}", want: []string{"spec.size", "-1", "greater than or equal to 0"}},
		"size with a fraction":       {spec: "{size: 1.5}", want: []string{"spec.size", "must be of type integer"}},
		"size as text":               {spec: `{size: "3"}`, want: []string{"spec.size", "must be of type integer", "string"}},
		"size missing":               {spec: "{}", want: []string{"spec.size", "Required value"}},
		"size null":                  {spec: "{size: null}", want: []string{"spec.size"}},
		"size beyond 32 bits":        {spec: "{size: 3000000000}", want: []string{"spec.size", "3000000000"}},
		"spec missing":               {spec: "null", want: []string{"spec", "Required value"}},
		"an unknown field":           {spec: "{size: 3, replicas: 3}", want: []string{"unknown field", "spec.replicas"}},
		"a field in upper case":      {spec: "{Size: 3}", want: []string{"unknown field", "spec.Size"}},
		"a name of 64 characters":    {name: long, spec: "{size: 1}", want: []string{"metadata.name", "63"}},
		"a name that begins with 1":  {name: "1cache", spec: "{size: 1}", want: []string{"metadata.name", "begin with a letter"}},
		"a name with a dot":          {name: "a.b", spec: "{size: 1}", want: []string{"metadata.name", "DNS-1035"}},
		"a name in upper case":       {name: "A", spec: "{size: 1}", want: []string{"metadata.name", "lower"}},
		"a name that ends in a dash": {name: "a-", spec: "{size: 1}", want: []string{"metadata.name"}},
		"an empty image":             {spec: `{size: 1, image: ""}`, want: []string{"spec.image", `""`, "leave image out"}},
		"an image with a space":      {spec: `{size: 1, image: "memcached :1"}`, want: []string{"spec.image", "memcached :1", "white space"}},
		"an imagePolicy unheard of":  {spec: "{size: 1, imagePolicy: Sometimes}", want: []string{"spec.imagePolicy", "Sometimes", "Keep", "Follow"}},
		"a nameless pull secret":     {spec: "{size: 1, imagePullSecrets: [{}]}", want: []string{"spec.imagePullSecrets", "name of a Secret"}},
		"a pull secret twice":        {spec: "{size: 1, imagePullSecrets: [{name: a}, {name: a}]}", want: []string{"spec.imagePullSecrets", "Duplicate"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := createRaw(t, namespace, test.name, test.spec)
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Fatalf("creating gave %v, want a refusal", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestTheAPIServerTakesGoodInput(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	tests := map[string]struct {
		name string
		spec string
	}{
		"the smallest":            {spec: "{size: 3}"},
		"size 0":                  {spec: "{size: 0}"},
		"a name of one letter":    {name: "a", spec: "{size: 1}"},
		"a name of 63 characters": {name: strings.Repeat("a", 63), spec: "{size: 1}"},
		"an image with a digest":  {spec: "{size: 1, image: 'registry.example.com:5000/cache/memcached@sha256:0000000000000000000000000000000000000000000000000000000000000000'}"},
		"everything":              {spec: "{size: 1, image: 'memcached:1', imagePolicy: Follow, imagePullSecrets: [{name: a}, {name: b}]}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := createRaw(t, namespace, test.name, test.spec); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDefaultsAreWrittenByTheAPIServer(t *testing.T) {
	t.Parallel()
	mc := create(t, newNamespace(t), cachev1.MemcachedSpec{Size: 3})
	want := cachev1.MemcachedSpec{Size: 3, ImagePolicy: cachev1.ImagePolicyKeep}
	if diff := cmp.Diff(want, mc.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// createRaw sends the YAML as kubectl apply does: nothing typed in between, unknown fields refused. It stores nothing.
func createRaw(t *testing.T, namespace, name, spec string) error {
	t.Helper()
	if name == "" {
		name = "cart"
	}
	mc := &unstructured.Unstructured{Object: map[string]any{}}
	var parsed any
	if err := yaml.Unmarshal([]byte(spec), &parsed); err != nil {
		t.Fatal(err)
	}
	mc.Object["spec"] = parsed
	mc.SetGroupVersionKind(cachev1.GroupVersion.WithKind("Memcached"))
	mc.SetNamespace(namespace)
	mc.SetName(name)
	return testClient.Create(t.Context(), mc, client.DryRunAll, client.FieldValidation("Strict"))
}
