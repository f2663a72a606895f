// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// examples is what the console offers to start from: the samples, as JSON. It is an error if our own API refuses one.
func examples(from *manifests) (string, error) {
	for _, example := range from.examples {
		crd := from.crd(example.GroupVersionKind().Group, example.GetKind())
		if err := accepts(crd, example); err != nil {
			return "", fmt.Errorf("config/samples: %s %s is refused by config/crd: %w: change the sample", example.GetKind(), example.GetName(), err)
		}
	}
	var objects []map[string]any
	for _, example := range from.examples {
		objects = append(objects, example.Object)
	}
	text, err := json.MarshalIndent(objects, "", "  ")
	return string(text), err
}

// accepts does what the API server does before it stores a new object, and returns the first reason to refuse it.
func accepts(crd *apiextensionsv1.CustomResourceDefinition, example unstructured.Unstructured) error {
	schema, err := schemaOf(crd, example.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		return err
	}
	object := example.DeepCopy().Object
	unknown := pruning.PruneWithOptions(object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("%s: unknown field", unknown[0])
	}
	defaulting.Default(object, structural)

	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return err
	}
	refused := validation.ValidateCustomResource(nil, object, validator)
	refused = append(refused, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if len(refused) == 0 { // rules may rely on the schema
		rules := schemacel.NewValidator(structural, true, celconfig.PerCallLimit)
		broken, _ := rules.Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
		refused = append(refused, broken...)
	}
	if len(refused) == 0 {
		return nil
	}
	if first := refused[0]; first.Field != (*field.Path)(nil).String() {
		return first
	}
	return errors.New(refused[0].Detail) // a rule on the whole object: there is no field to name
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) (*apiextensions.JSONSchemaProps, error) {
	for _, candidate := range crd.Spec.Versions {
		if candidate.Name == version {
			schema := &apiextensions.JSONSchemaProps{}
			return schema, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(candidate.Schema.OpenAPIV3Schema, schema, nil)
		}
	}
	return nil, fmt.Errorf("apiVersion: there is no version %q", version)
}
