// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"

	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// What operator-sdk's commands say of the bundle, and do with it.

// aboutItself is in the one warning that has nothing to do with a bundle: that of the validator "operatorhub".
const aboutItself = `The "operatorhub" validator is deprecated`

// Covers the validators as the pipelines of the catalogs call them. What each rule says is tested in internal/bundle.
func TestOperatorSDKValidatesTheBundle(t *testing.T) {
	for _, selector := range []string{"suite=operatorframework", "name=community", "name=operatorhub"} {
		t.Run(selector, func(t *testing.T) {
			output, err := tool(t.Context(), "operator-sdk", "bundle", "validate", "bundle", "--select-optional", selector, "--output=json-alpha1")
			if err != nil {
				t.Fatal(err)
			}
			var result struct {
				Passed  bool
				Outputs []struct{ Type, Message string }
			}
			if err := json.Unmarshal([]byte(output), &result); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if !result.Passed {
				t.Errorf("not passed: %s", output)
			}
			for _, said := range result.Outputs {
				if !strings.Contains(said.Message, aboutItself) {
					t.Errorf("%s: %s", said.Type, said.Message)
				}
			}
		})
	}
}

// unavoidable is said of each example that has no status, and ours are what users write.
const unavoidable = "does not have status spec"

func TestScorecardPasses(t *testing.T) {
	namespace := framework.NewNamespace(t)
	output, err := tool(t.Context(), "operator-sdk", "scorecard", "bundle", "--namespace="+namespace,
		"--pod-security=restricted", "--wait-time=2m", "--untar-image="+busybox, "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	var list v1alpha3.TestList
	if err := json.Unmarshal([]byte(output), &list); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	passed := 0
	for _, test := range list.Items {
		for _, result := range test.Status.Results {
			if result.State == v1alpha3.PassState {
				passed++
			}
			suggestions := slices.DeleteFunc(result.Suggestions, func(suggestion string) bool { return strings.Contains(suggestion, unavoidable) })
			if result.State != v1alpha3.PassState || len(result.Errors) > 0 || len(suggestions) > 0 {
				t.Errorf("%s: %s, errors %q, suggestions %q", result.Name, result.State, result.Errors, suggestions)
			}
			t.Logf("%s: %s, suggestions %q", result.Name, result.State, result.Suggestions)
		}
	}
	if passed != 6 {
		t.Errorf("%d tests passed, want 6", passed)
	}
}

// Covers what a contributor does to try a bundle, and an upgrade to another.
func TestOperatorSDKRunsUpgradesAndRemovesTheBundle(t *testing.T) {
	namespace := framework.NewNamespace(t)
	sdk := func(args ...string) {
		t.Helper()
		output, err := tool(t.Context(), "operator-sdk", append(args, "--namespace="+namespace, "--timeout=4m")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, state(namespace))
		}
		t.Logf("operator-sdk %s\n%s", strings.Join(args[:2], " "), output)
	}
	removeWhatRemains(t)
	sdk("run", "bundle", local(current.image), "--index-image="+local(opmImage), "--security-context-config=restricted")
	framework.Apply(t, namespace, framework.Memcached("cart", "{size: 1}"))
	pods := framework.Serves(t, namespace, "cart", 1)
	sdk("run", "bundle-upgrade", local(next.image), "--security-context-config=restricted")
	succeeds(t, namespace, next)
	if diff := cmp.Diff(pods, framework.Serves(t, namespace, "cart", 1)); diff != "" {
		t.Errorf("pods (-before +after the upgrade):\n%s", diff)
	}
	sdk("cleanup", packageName)
	if left := framework.Kubectl(t, namespace, "get", "csv,subscription", "-o", "name"); left != "" {
		t.Errorf("after cleanup there is %q", left)
	}
}
