// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	olm "github.com/operator-framework/api/pkg/manifests"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// released holds the manifests of the last released bundle. docs/releasing.md says when they are put there.
const released = "testdata/released"

// An upgrade must find every stored Memcached acceptable and the operator's Deployment changeable.
func TestUpgradeFromTheLastReleaseTakesNothingAway(t *testing.T) {
	now := load(t, committed(t))
	if _, err := os.Stat(released); os.IsNotExist(err) {
		if now.CSV.Spec.Replaces != "" {
			t.Fatalf("the bundle replaces %s: put its manifests into internal/bundle/%s", now.CSV.Spec.Replaces, released)
		}
		t.Skip("nothing has been released yet")
	}
	before, err := olm.GetBundleFromDir(released)
	if err != nil {
		t.Fatal(err)
	}
	if now.CSV.Spec.Replaces != before.CSV.Name {
		t.Errorf("the bundle replaces %q, and the last that was released is %s", now.CSV.Spec.Replaces, before.CSV.Name)
	}
	for _, loss := range losses(before, now.Bundle) {
		t.Error(loss)
	}
}

// losses are what an upgrade from one bundle to another would break.
func losses(before, now *olm.Bundle) []string {
	var all []string
	for _, crd := range before.V1CRDs {
		at := slices.IndexFunc(now.V1CRDs, func(other *apiextensionsv1.CustomResourceDefinition) bool { return other.Name == crd.Name })
		if at < 0 {
			all = append(all, crd.Name+" is gone")
			continue
		}
		all = append(all, crdLosses(crd, now.V1CRDs[at])...)
	}
	deployments := now.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for _, deployment := range before.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, other := range deployments {
			if other.Name == deployment.Name && !reflect.DeepEqual(other.Spec.Selector, deployment.Spec.Selector) {
				all = append(all, "the selector of Deployment "+deployment.Name+" changed: a cluster refuses that")
			}
		}
	}
	return all
}

func crdLosses(before, now *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	if before.Spec.Scope != now.Spec.Scope || before.Spec.Names.Kind != now.Spec.Names.Kind {
		all = append(all, before.Name+" changed its scope or its kind")
	}
	for _, version := range before.Spec.Versions {
		at := slices.IndexFunc(now.Spec.Versions, func(other apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return other.Name == version.Name
		})
		if at < 0 {
			all = append(all, version.Name+" is gone: resources may be stored in it")
			continue
		}
		other := now.Spec.Versions[at]
		if version.Served && !other.Served {
			all = append(all, version.Name+" is no longer served")
		}
		all = append(all, schemaLosses(version.Name, version.Schema.OpenAPIV3Schema, other.Schema.OpenAPIV3Schema)...)
	}
	return all
}

// schemaLosses are what the one schema accepts or keeps and the other doesn't, at a path and below it.
func schemaLosses(path string, before, now *apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	lose := func(what string, from, to any) {
		all = append(all, fmt.Sprintf("%s: %s changed from %v to %v", path, what, shown(from), shown(to)))
	}
	for _, same := range []struct {
		what          string
		before, after any
	}{
		{"type", before.Type, now.Type},
		{"format", before.Format, now.Format},
		{"int-or-string", before.XIntOrString, now.XIntOrString},
		{"list type", before.XListType, now.XListType},
		{"keys of the list", before.XListMapKeys, now.XListMapKeys},
		// What these mean is too much for a test: a person has to compare.
		{"allOf", before.AllOf, now.AllOf},
		{"anyOf", before.AnyOf, now.AnyOf},
		{"oneOf", before.OneOf, now.OneOf},
		{"not", before.Not, now.Not},
	} {
		if !reflect.DeepEqual(same.before, same.after) {
			lose(same.what, same.before, same.after)
		}
	}
	if before.Nullable && !now.Nullable {
		lose("nullable", true, false)
	}
	if now.Pattern != "" && now.Pattern != before.Pattern {
		lose("pattern", before.Pattern, now.Pattern)
	}
	if now.MultipleOf != nil && !reflect.DeepEqual(before.MultipleOf, now.MultipleOf) {
		lose("multipleOf", before.MultipleOf, now.MultipleOf)
	}
	if raised(before.Minimum, now.Minimum) || now.ExclusiveMinimum && !before.ExclusiveMinimum {
		lose("minimum", before.Minimum, now.Minimum)
	}
	if lowered(before.Maximum, now.Maximum) || now.ExclusiveMaximum && !before.ExclusiveMaximum {
		lose("maximum", before.Maximum, now.Maximum)
	}
	for _, bound := range []struct {
		what        string
		before, now *int64
		tightened   func(before, now *int64) bool
	}{
		{"minLength", before.MinLength, now.MinLength, raised[int64]},
		{"minItems", before.MinItems, now.MinItems, raised[int64]},
		{"minProperties", before.MinProperties, now.MinProperties, raised[int64]},
		{"maxLength", before.MaxLength, now.MaxLength, lowered[int64]},
		{"maxItems", before.MaxItems, now.MaxItems, lowered[int64]},
		{"maxProperties", before.MaxProperties, now.MaxProperties, lowered[int64]},
	} {
		if bound.tightened(bound.before, bound.now) {
			lose(bound.what, bound.before, bound.now)
		}
	}
	if from, to := choices(before), choices(now); to != nil && (from == nil || !contains(to, from)) {
		lose("enum", from, to)
	}
	if !contains(before.Required, now.Required) {
		lose("required", before.Required, now.Required)
	}
	for _, rule := range now.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(other apiextensionsv1.ValidationRule) bool { return other.Rule == rule.Rule }) {
			lose("rule", "none", rule.Rule)
		}
	}

	for name, property := range before.Properties {
		if other, found := now.Properties[name]; found {
			all = append(all, schemaLosses(path+"."+name, &property, &other)...)
		} else {
			all = append(all, path+"."+name+" is gone: its values would be lost")
		}
	}
	if before.Items != nil && now.Items != nil {
		all = append(all, schemaLosses(path+"[]", before.Items.Schema, now.Items.Schema)...)
	}
	if before.AdditionalProperties != nil {
		if now.AdditionalProperties == nil || now.AdditionalProperties.Schema == nil {
			all = append(all, path+".* is gone: its values would be lost")
		} else if before.AdditionalProperties.Schema != nil {
			all = append(all, schemaLosses(path+".*", before.AdditionalProperties.Schema, now.AdditionalProperties.Schema)...)
		}
	}
	return all
}

func raised[T int64 | float64](before, now *T) bool {
	return now != nil && (before == nil || *now > *before)
}

func lowered[T int64 | float64](before, now *T) bool {
	return now != nil && (before == nil || *now < *before)
}

// choices are the values of an enum; nil if any value is allowed.
func choices(schema *apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	for _, value := range schema.Enum {
		all = append(all, string(value.Raw))
	}
	return all
}

// contains says whether all elements are in the list.
func contains(list, elements []string) bool {
	return !slices.ContainsFunc(elements, func(element string) bool { return !slices.Contains(list, element) })
}

// shown is what a pointer points to.
func shown(value any) any {
	if pointer := reflect.ValueOf(value); pointer.Kind() == reflect.Pointer && !pointer.IsNil() {
		return pointer.Elem().Interface()
	}
	return value
}

func TestLossesOfAnUpgradeAreFound(t *testing.T) {
	files := build(t, request())
	type version = apiextensionsv1.CustomResourceDefinitionVersion
	root := func(change func(*apiextensionsv1.JSONSchemaProps)) func(*olm.Bundle) {
		return func(b *olm.Bundle) { change(b.V1CRDs[0].Spec.Versions[0].Schema.OpenAPIV3Schema) }
	}
	spec := func(field string, change func(*apiextensionsv1.JSONSchemaProps)) func(*olm.Bundle) {
		return root(func(schema *apiextensionsv1.JSONSchemaProps) {
			spec := schema.Properties["spec"]
			property := spec.Properties[field]
			change(&property)
			spec.Properties[field] = property
		})
	}
	for name, test := range map[string]struct {
		change func(*olm.Bundle)
		want   []string
	}{
		"nothing changed": {func(*olm.Bundle) {}, nil},
		"a field is gone": {
			root(func(s *apiextensionsv1.JSONSchemaProps) { delete(s.Properties["spec"].Properties, "imagePullSecrets") }),
			[]string{"v1.spec.imagePullSecrets is gone: its values would be lost"},
		},
		"a field of status is gone": {
			root(func(s *apiextensionsv1.JSONSchemaProps) { delete(s.Properties["status"].Properties, "nodes") }),
			[]string{"v1.status.nodes is gone: its values would be lost"},
		},
		"a version is gone": {
			func(b *olm.Bundle) { b.V1CRDs[0].Spec.Versions[0].Name = "v2" },
			[]string{"v1 is gone: resources may be stored in it"},
		},
		"a version isn't served": {
			func(b *olm.Bundle) { b.V1CRDs[0].Spec.Versions[0].Served = false },
			[]string{"v1 is no longer served"},
		},
		"the API is gone": {
			func(b *olm.Bundle) { b.V1CRDs = nil },
			[]string{"memcacheds.cache.example.com is gone"},
		},
		"the scope changed": {
			func(b *olm.Bundle) { b.V1CRDs[0].Spec.Scope = apiextensionsv1.ClusterScoped },
			[]string{"memcacheds.cache.example.com changed its scope or its kind"},
		},
		"a minimum is raised": {
			spec("size", func(s *apiextensionsv1.JSONSchemaProps) { s.Minimum = new(1.0) }),
			[]string{"v1.spec.size: minimum changed from 0 to 1"},
		},
		"a maximum is added": {
			spec("size", func(s *apiextensionsv1.JSONSchemaProps) { s.Maximum = new(100.0) }),
			[]string{"v1.spec.size: maximum changed from <nil> to 100"},
		},
		"a text must be shorter": {
			spec("image", func(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength = new(int64(63)) }),
			[]string{"v1.spec.image: maxLength changed from 1024 to 63"},
		},
		"a list must be shorter": {
			spec("imagePullSecrets", func(s *apiextensionsv1.JSONSchemaProps) { s.MaxItems = new(int64(1)) }),
			[]string{"v1.spec.imagePullSecrets: maxItems changed from 16 to 1"},
		},
		"a pattern is added": {
			spec("image", func(s *apiextensionsv1.JSONSchemaProps) { s.Pattern = "^quay.io/" }),
			[]string{"v1.spec.image: pattern changed from  to ^quay.io/"},
		},
		"a choice is gone": {
			spec("imagePolicy", func(s *apiextensionsv1.JSONSchemaProps) { s.Enum = s.Enum[:1] }),
			[]string{`v1.spec.imagePolicy: enum changed from ["Keep" "Follow"] to ["Keep"]`},
		},
		"a rule is added to the elements of a list": {
			spec("imagePullSecrets", func(s *apiextensionsv1.JSONSchemaProps) {
				s.Items.Schema.XValidations = append(s.Items.Schema.XValidations, apiextensionsv1.ValidationRule{Rule: "self.name != 'a'"})
			}),
			[]string{"v1.spec.imagePullSecrets[]: rule changed from none to self.name != 'a'"},
		},
		"a field becomes required": {
			root(func(s *apiextensionsv1.JSONSchemaProps) {
				spec := s.Properties["spec"]
				spec.Required = append(spec.Required, "image")
				s.Properties["spec"] = spec
			}),
			[]string{"v1.spec: required changed from [size] to [size image]"},
		},
		"a type changed": {
			spec("size", func(s *apiextensionsv1.JSONSchemaProps) { s.Type = "string" }),
			[]string{"v1.spec.size: type changed from integer to string"},
		},
		"a list becomes a set": {
			root(func(s *apiextensionsv1.JSONSchemaProps) {
				nodes := s.Properties["status"].Properties["nodes"]
				nodes.XListType = new("set")
				s.Properties["status"].Properties["nodes"] = nodes
			}),
			[]string{"v1.status.nodes: list type changed from atomic to set"},
		},
		"the Deployment's selector changed": {
			func(b *olm.Bundle) {
				b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Selector.MatchLabels["version"] = "2"
			},
			[]string{"the selector of Deployment memcached-operator-controller-manager changed: a cluster refuses that"},
		},
		"a field, a version, a choice and room are added": {
			func(b *olm.Bundle) {
				spec("colour", func(s *apiextensionsv1.JSONSchemaProps) { s.Type = "string"; s.MinLength = new(int64(1)) })(b)
				spec("imagePolicy", func(s *apiextensionsv1.JSONSchemaProps) {
					s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"Never"`)})
				})(b)
				spec("image", func(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength, s.XValidations = nil, nil })(b)
				spec("size", func(s *apiextensionsv1.JSONSchemaProps) { s.Minimum = new(-1.0) })(b)
				b.V1CRDs[0].Spec.Versions = append(b.V1CRDs[0].Spec.Versions, version{Name: "v2", Served: true})
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := load(t, files), load(t, files)
			test.change(now.Bundle)
			if diff := cmp.Diff(test.want, losses(before.Bundle, now.Bundle)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The folder is read as a bundle is, so whoever puts the next release there need not rearrange it.
func TestReleasedManifestsAreThoseOfABundle(t *testing.T) {
	dir := t.TempDir()
	if err := committed(t).Write(dir); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "released")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(dir, "bundle", "manifests"))); err != nil {
		t.Fatal(err)
	}
	read, err := olm.GetBundleFromDir(copied)
	if err != nil || read.CSV == nil || len(read.V1CRDs) != 1 {
		t.Errorf("reading a copy of bundle/manifests gave %v, %v", read, err)
	}
}
