// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rule is one that a bundle must meet, by the name that its author gave it. Those of others are written anew here, from
// what their code and documentation say, where they can't be called.
type rule struct {
	name string
	// pinned: it is asked of bundles that are released, whose images have digests, and not of the committed one.
	pinned bool
	// check returns what is wrong.
	check func(*loaded) []string
}

func rules() []rule {
	return slices.Concat(operatorFrameworkRules(), scorecardRules(), preflightRules(), pipelineRules(), conformaRules(), ourRules())
}

// broken are the rules that a bundle breaks, each with its complaints.
func broken(b *loaded, pinned bool) map[string][]string {
	all := map[string][]string{}
	for _, rule := range rules() {
		if rule.pinned && !pinned {
			continue
		}
		if complaints := rule.check(b); len(complaints) > 0 {
			all[rule.name] = complaints
		}
	}
	return all
}

func TestRule(t *testing.T) {
	for kind, test := range map[string]struct {
		files  Files
		pinned bool
	}{
		"committed bundle":                 {files: committed(t)},
		"bundle pinned against a registry": {files: build(t, pinnedRequest(t)), pinned: true},
	} {
		b := load(t, test.files)
		for _, rule := range rules() {
			if rule.pinned && !test.pinned {
				continue
			}
			t.Run(kind+"/"+rule.name, func(t *testing.T) {
				for _, complaint := range rule.check(b) {
					t.Error(complaint)
				}
			})
		}
	}
}

// Some rules can't or needn't hold for us. They are listed, so that nobody wonders whether they were forgotten.
func TestRuleThatDoesNotApply(t *testing.T) {
	for name, reason := range map[string]string{
		"operator-framework/PackageManifestValidator":         "a package manifest is the format before bundles; there is none",
		"operator-framework/OperatorGroupValidator":           "a bundle can't hold an OperatorGroup: operator-registry/ValidateBundleContent",
		"operator-framework/OperatorHubValidator":             "deprecated: always warns that OperatorHubV2, StandardCapabilities and StandardCategories took its place",
		"preflight/DeployableByOLM":                           "needs an OpenShift cluster; its static part is ours/no fixed namespace",
		"preflight/BundleImageRefsAreCertified":               "optional: asks Red Hat's catalog, in which our images aren't",
		"certified/check_marketplace_index":                   "of the marketplace repository, to which we don't submit",
		"community/check_operator_name_unique":                "compares with the other operators of a catalog repository",
		"community/check_dangling_bundles":                    "looks at the whole of a catalog: catalog_test.go does so for ours",
		"conforma/allowed_registries":                         "only Red Hat's own products: all images from registry.redhat.io; ours are on quay.io and docker.io",
		"conforma/allowed_registries_related":                 "only Red Hat's own products: all images from registry.redhat.io; ours are on quay.io and docker.io",
		"conforma/required_network_policy_rbac_for_operands":  "only Red Hat's own products: the operator creates no NetworkPolicy, so it asks for no right to",
		"conforma/inaccessible_related_images":                "needs the network; USE_IMAGE_DIGESTS=true asks the registry for each image, and fails if one isn't there",
		"conforma/unmapped_references":                        "compares with the images that one Konflux build made together",
		"common/check_replaces_availability":                  "looks at the whole of a catalog: catalog_test.go does so for ours",
		"conforma/olm_bundle_multi_arch":                      "about the bundle's image, which holds files only, and not about what is in it",
		"operator-framework/MultipleArchitecturesValidator":   "runs docker; its static part is a rule of the same name with (static part)",
		"community/check_upgrade_graph_loop, check_using_fbc": "look at the whole of a catalog: catalog_test.go does so for ours",
	} {
		t.Run(name, func(t *testing.T) { t.Skip(reason) })
	}
}

// A rule that can't fail says nothing.
func TestEveryRuleFindsAFault(t *testing.T) {
	good := build(t, pinnedRequest(t))
	found := map[string]bool{}
	for _, fault := range faults() {
		t.Run(fault.name, func(t *testing.T) {
			files := good.clone()
			fault.change(t, files)
			complaints := broken(load(t, files), true)
			var got []string
			for _, rule := range rules() {
				if len(complaints[rule.name]) > 0 {
					got = append(got, rule.name)
					found[rule.name] = true
				}
			}
			slices.Sort(got)
			want := slices.Clone(fault.breaks)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s\nthey say: %v", diff, complaints)
			}
		})
	}
	for _, rule := range rules() {
		if !found[rule.name] {
			t.Errorf("no fault breaks the rule %s: add one to faults_test.go", rule.name)
		}
	}
}

// The Memcached sample that operator-sdk comes with has thirty faults, by our notes on it. A rule finds each that a bundle
// can have; the others are kept out in other ways.
func TestNoneOfTheSamplesThirtyFaults(t *testing.T) {
	covered := map[int]string{
		19: "leader election: internal/options has OpenShift's figures, and a lease that is named for the operator",
		20: "OperatorCondition, TLS profiles and must-gather are no part of this version; their features say \"false\"",
		21: "the operator creates no NetworkPolicy: see TestRuleThatDoesNotApply",
		27: "the manager's Dockerfile is built on UBI, with labels, licences and a numeric user",
		28: "the catalog is file-based: catalog_test.go",
		29: "the bundle is reproducible, and `make verify` compares: TestCommittedBundleIsUpToDate",
		30: "all of the scorecard's tests run; what custom ones would check is checked here and in test/e2e",
	}
	for _, fault := range faults() {
		var number int
		if _, err := fmt.Sscanf(fault.name, "sample %d:", &number); err == nil {
			covered[number] = fault.name
		}
	}
	for number := 1; number <= 30; number++ {
		if covered[number] == "" {
			t.Errorf("nothing keeps fault %d out", number)
		}
	}
}
