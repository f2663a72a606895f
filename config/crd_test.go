// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// oldestCEL is the version whose functions the rules may use: an API server of 1.31, the oldest that is supported, goes by
// the functions of the version before, so that it can be rolled back.
var oldestCEL = version.MajorMinor(1, 30)

func TestCELRulesCompileOnTheOldestSupportedKubernetes(t *testing.T) {
	crd := readCRD(t)
	environments := environment.MustBaseEnvSet(oldestCEL)
	for _, served := range crd.Spec.Versions {
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(served.Schema.OpenAPIV3Schema, internal, nil); err != nil {
			t.Fatal(err)
		}
		root, err := schema.NewStructural(internal)
		if err != nil {
			t.Fatal(err)
		}
		if rules := compile(t, environments, "", root, true); rules < 2 {
			t.Errorf("version %s has %d rules: this test looks in the wrong place", served.Name, rules)
		}
	}
}

// An API server refuses a CRD whose rules could take too long, as it reckons from the bounds of texts, lists and maps.
func TestTheRulesOfTheCRDAreWithinTheirCostBudget(t *testing.T) {
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(readCRD(t), internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{internal.Spec.Versions[0].Name} // the API server writes it
	if refused := validation.ValidateCustomResourceDefinition(t.Context(), internal); len(refused) > 0 {
		t.Error(refused.ToAggregate())
	}
}

func readCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	contents, err := os.ReadFile(filepath.Join("crd", "bases", "cache.example.com_memcacheds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err = yaml.UnmarshalStrict(contents, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// compile compiles the rules of a schema and of all schemas in it, and returns how many there are.
func compile(t *testing.T, environments *environment.EnvSet, path string, s *schema.Structural, isRoot bool) (rules int) {
	t.Helper()
	if len(s.XValidations) > 0 {
		results, err := cel.Compile(s, model.SchemaDeclType(s, isRoot), 0, environments, cel.NewExpressionsEnvLoader())
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range results {
			if result.Error != nil {
				t.Errorf("%s: rule %q: %v", path, s.XValidations[i].Rule, result.Error)
			}
			if result.MessageExpressionError != nil {
				t.Errorf("%s: message %q: %v", path, s.XValidations[i].MessageExpression, result.MessageExpressionError)
			}
		}
		rules += len(results)
	}
	for name, property := range s.Properties {
		rules += compile(t, environments, path+"."+name, &property, false)
	}
	if s.Items != nil {
		rules += compile(t, environments, path+"[]", s.Items, false)
	}
	return rules
}
