// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	contents, err := os.ReadFile(filepath.Join("crd", "bases", "cache.example.com_memcacheds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err = yaml.UnmarshalStrict(contents, crd); err != nil {
		t.Fatal(err)
	}
	environments := environment.MustBaseEnvSet(oldestCEL)
	for _, served := range crd.Spec.Versions {
		internal := &apiextensions.JSONSchemaProps{}
		if err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(served.Schema.OpenAPIV3Schema, internal, nil); err != nil {
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
