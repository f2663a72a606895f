// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// unreadableTimes pass for a date-time. No Go program can write the first three back, or read the others.
var unreadableTimes = []string{
	`"0001-01-01T00:00:00Z"`, `"0000-01-01T00:00:00+23:59"`, `"9999-12-31T23:59:59-23:59"`,
	`[]`, `["2006-01-02T15:04:05Z"]`, `"2006-01-02T15:04:05x5Z"`, `"2006-01-02T15:04:05+99:99"`, `"2006-01-02T15:04:05Zt"`,
	`"2006-01-02T15:04:05z"`, `"2006-01-02t15:04:05Z"`,
}

// One object that the operator's types can't hold would stop the watch of all: it would be blind until that is mended.
func TestWhatTheAPIServerTakesTheTypesCanHold(t *testing.T) {
	t.Parallel()
	mc := create(t, newNamespace(t), everything(t).Spec)
	mc.Status = cachev1.MemcachedStatus{
		Nodes: []string{"cart-a"}, Replicas: 1, ReadyReplicas: 1, Selector: "a=b", Endpoint: "cart:11211", Image: "memcached:1", ObservedGeneration: 1,
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "True", Reason: "AllPodsReady", Message: "all", ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
		}},
	}
	if err := testClient.Status().Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	dry := client.NewDryRunClient(testClient)
	values := slices.Concat(unreadableTimes, []string{
		`null`, `true`, `""`, `"a"`, `"1"`, `{}`, `{"a": null}`, `[null]`, `[1]`, `["a"]`, `[{}]`, `[[]]`, `"\ud800"`,
		`0`, `-0.0`, `3.0`, `1.5`, `1.000000001`, `1e3`, `1e18`, `1e21`, `1e-400`,
		`2147483648`, `2147483648.0`, `-2147483649`, `9007199254740993.0`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775809`,
		`"1e999999999999"`, `"-1e-999999999999"`, `"1E"`, `"1e3"`, `"0.0000000000000001"`, `"+.5Gi"`, `"64Mi"`, // quantities
		`"2006-01-02T15:04:05,5Z"`, `"2006-01-02T15:04:05+24:60"`, `"2006-01-02T15:04:60Z"`, `"2006-02-29T00:00:00Z"`, `"2006-01-02"`,
	})
	for _, path := range fieldPaths(t, mc) {
		if err := patchJSON(t, dry, mc, path, `"op": "move", "from": %q`, path); err != nil {
			t.Fatalf("%s, as it is, is refused; does api/v1/testdata/everything.yaml lack it? %v", path, err)
		}
		t.Run(strings.ReplaceAll(path, "/", "."), func(t *testing.T) {
			t.Parallel()
			for _, value := range values {
				err := patchJSON(t, dry, mc, path, `"op": "replace", "value": %s`, value)
				if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
					t.Errorf("%s may be %s, and then: %v", path, value, err)
				}
			}
		})
	}
}

// everything is a Memcached that sets every field.
func everything(t *testing.T) *cachev1.Memcached {
	t.Helper()
	contents, err := os.ReadFile(filepath.Join("..", "api", "v1", "testdata", "everything.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mc := &cachev1.Memcached{}
	if err := yaml.UnmarshalStrict(contents, mc); err != nil {
		t.Fatal(err)
	}
	return mc
}

func TestATimeThatGoCannotReadIsRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	settled(t, mc)

	for _, value := range unreadableTimes {
		err := patchJSON(t, testClient, mc, "/status/conditions/0/lastTransitionTime", `"op": "replace", "value": %s`, value)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "lastTransitionTime must be a time such as") {
			t.Errorf("lastTransitionTime %s: %v, want a refusal that says what would be right", value, err)
		}
	}

	other := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}, Spec: mc.Spec}
	if err := testClient.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	settled(t, other)
}

func TestATimeThatGoCanReadIsTaken(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	mc := create(t, namespace, cachev1.MemcachedSpec{Size: 1})
	mc.Status = cachev1.MemcachedStatus{Nodes: []string{}, Conditions: []metav1.Condition{{
		Type: "Ready", Status: "True", Reason: "AllPodsReady", LastTransitionTime: metav1.Now(),
	}}}
	if err := testClient.Status().Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{
		"2006-01-02T15:04:05Z", "2006-01-02T15:04:05.5Z", "2006-01-02T15:04:05.123456789+05:45", "2006-01-02T15:04:05-00:00",
		"2006-01-02T15:04:05+23:59", "2024-02-29T23:59:59-12:00", "1970-01-01T00:00:00Z", "0001-01-01T00:00:01Z", "9999-12-31T23:59:58.999Z",
	} {
		if err := patchJSON(t, testClient, mc, "/status/conditions/0/lastTransitionTime", `"op": "replace", "value": %q`, value); err != nil {
			t.Errorf("lastTransitionTime %s: %v", value, err)
		}
	}
}

// patchJSON sends one operation of a JSON patch, which may hold what no Go value becomes. An error that isn't the API
// server's comes from reading its answer.
func patchJSON(t *testing.T, c client.Client, mc *cachev1.Memcached, path, operation string, argument any) error {
	t.Helper()
	patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"path": %q, `+operation+`}]`, path, argument))
	read := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: mc.Namespace, Name: mc.Name}}
	if strings.HasPrefix(path, "/status/") {
		return c.Status().Patch(t.Context(), read, patch)
	}
	return c.Patch(t.Context(), read, patch)
}

// fieldPaths are the JSON pointers of all fields, elements of lists and values of maps, in spec and status, but of fields
// that are the same all over, as those of label selectors are, only the first. The keys of the maps are those of mc.
func fieldPaths(t *testing.T, mc *cachev1.Memcached) []string {
	t.Helper()
	contents, err := os.ReadFile(filepath.Join("..", "config", "crd", "bases", "cache.example.com_memcacheds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err = yaml.UnmarshalStrict(contents, crd); err != nil {
		t.Fatal(err)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mc)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	seen := sets.New[string]()
	var walk func(schema *apiextensionsv1.JSONSchemaProps, value any, path string)
	walk = func(schema *apiextensionsv1.JSONSchemaProps, value any, path string) {
		fields, _ := value.(map[string]any)
		elements, _ := value.([]any)
		inside := func(schema *apiextensionsv1.JSONSchemaProps, key string, value any) {
			same, err := json.Marshal(schema)
			if err != nil {
				t.Fatal(err)
			}
			if known := key + string(same); !seen.Has(known) {
				seen.Insert(known)
				paths = append(paths, path+"/"+key)
				walk(schema, value, path+"/"+key)
			}
		}
		for name, property := range schema.Properties {
			inside(&property, name, fields[name])
		}
		if schema.AdditionalProperties != nil {
			for key, value := range fields {
				inside(schema.AdditionalProperties.Schema, strings.ReplaceAll(key, "/", "~1"), value)
			}
		}
		if schema.Items != nil {
			inside(schema.Items.Schema, "0", append(elements, nil)[0])
		}
	}
	for _, part := range []string{"spec", "status"} {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part]
		walk(&schema, object[part], "/"+part)
	}
	return paths
}
