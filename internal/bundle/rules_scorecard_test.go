// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scorecardRules are the six tests of operator-sdk's scorecard. None of them looks at a cluster.
func scorecardRules() []rule {
	return []rule{
		{name: "scorecard/basic-check-spec", check: examplesHaveSpec},
		{name: "scorecard/olm-bundle-validation", check: func(b *loaded) []string {
			return slices.Concat(bundleFormat(b), validated(validation.DefaultBundleValidators)(b))
		}},
		{name: "scorecard/olm-crds-have-validation", check: examplesMatchSchema},
		{name: "scorecard/olm-crds-have-resources", check: ownedHaveResources},
		{name: "scorecard/olm-spec-descriptors", check: examplesHaveSpecDescriptors},
		{name: "scorecard/olm-status-descriptors", check: ownedHaveStatusDescriptors},
		{name: "scorecard/configuration", check: scorecardConfiguration},
	}
}

func examplesHaveSpec(b *loaded) []string {
	var all []string
	if len(b.examples()) == 0 {
		all = append(all, "there are no examples")
	}
	for _, example := range b.examples() {
		if spec, _, _ := unstructured.NestedMap(example.Object, "spec"); len(spec) == 0 {
			all = append(all, "example "+example.GetName()+" has no spec")
		}
	}
	return all
}

func examplesMatchSchema(b *loaded) []string {
	var all []string
	for _, example := range b.examples() {
		for _, part := range []string{"spec", "status"} {
			content, _, _ := unstructured.NestedMap(example.Object, part)
			for _, field := range slices.Sorted(maps.Keys(content)) {
				if _, known := b.properties(example.GetKind(), part)[field]; !known {
					all = append(all, fmt.Sprintf("example %s: the schema has no %s.%s", example.GetName(), part, field))
				}
			}
		}
	}
	return all
}

// properties of the spec or the status of a kind, by the schema of its first version.
func (b *loaded) properties(kind, part string) map[string]apiextensionsv1.JSONSchemaProps {
	for _, crd := range b.V1CRDs {
		if crd.Spec.Names.Kind == kind {
			return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part].Properties
		}
	}
	return nil
}

func ownedHaveResources(b *loaded) []string {
	var all []string
	for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		if len(owned.Resources) == 0 {
			all = append(all, owned.Kind+" has no resources")
		}
	}
	return all
}

func examplesHaveSpecDescriptors(b *loaded) []string {
	var all []string
	for _, example := range b.examples() {
		spec, _, _ := unstructured.NestedMap(example.Object, "spec")
		for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
			for _, field := range slices.Sorted(maps.Keys(spec)) {
				if owned.Kind == example.GetKind() && !slices.ContainsFunc(owned.SpecDescriptors, func(d v1alpha1.SpecDescriptor) bool { return d.Path == field }) {
					all = append(all, fmt.Sprintf("example %s: spec.%s has no descriptor", example.GetName(), field))
				}
			}
		}
	}
	return all
}

func ownedHaveStatusDescriptors(b *loaded) []string {
	var all []string
	for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		if len(owned.StatusDescriptors) == 0 {
			all = append(all, owned.Kind+" has no descriptor of its status")
		}
	}
	return all
}

// scorecardConfiguration: all six are run, from one image.
func scorecardConfiguration(b *loaded) []string {
	want := []string{
		"basic-check-spec", "olm-bundle-validation", "olm-crds-have-resources", "olm-crds-have-validation",
		"olm-spec-descriptors", "olm-status-descriptors",
	}
	var got, images []string
	for _, stage := range b.scorecard.Stages {
		for _, test := range stage.Tests {
			got = append(got, test.Entrypoint[len(test.Entrypoint)-1])
			images = append(images, test.Image)
		}
	}
	slices.Sort(got)
	var all []string
	if !slices.Equal(want, got) {
		all = append(all, fmt.Sprintf("runs %q, want %q", got, want))
	}
	if images = slices.Compact(images); len(images) != 1 {
		all = append(all, fmt.Sprintf("runs the images %q", images))
	}
	return all
}
