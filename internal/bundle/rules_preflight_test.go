// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/validation"
	rbacv1 "k8s.io/api/rbac/v1"
)

// preflightRules are those that Red Hat's certification asks of bundles: openshift-preflight's operator policy.
func preflightRules() []rule {
	return []rule{
		{name: "preflight/ValidateOperatorBundle", check: validated(
			validation.DefaultBundleValidators, validation.AlphaDeprecatedAPIsValidator, validation.OperatorHubV2Validator,
			validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator)},
		{name: "preflight/RequiredAnnotations", check: requiredAnnotations},
		{name: "preflight/SecurityContextConstraintsInCSV", check: securityContextConstraints},
		{name: "preflight/AllImageRefsInRelatedImages", check: imagesAreRelated},
		{name: "preflight/FollowsRestrictedNetworkEnablementGuidelines", pinned: true, check: restrictedNetwork},
	}
}

// features are what a bundle must claim or deny.
var features = []string{"disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp"}

func requiredAnnotations(b *loaded) []string {
	var all []string
	for _, feature := range features {
		key := "features.operators.openshift.io/" + feature
		if value := b.CSV.Annotations[key]; value != "true" && value != "false" {
			all = append(all, fmt.Sprintf("annotation %s is %q, want \"true\" or \"false\"", key, value))
		}
	}
	return all
}

// securityContextConstraints: the pods run under the default ones, so no rule asks for others.
func securityContextConstraints(b *loaded) []string {
	var all []string
	for _, rule := range b.rules() {
		if slices.Contains(rule.APIGroups, "security.openshift.io") {
			all = append(all, fmt.Sprintf("asks for %v", rule))
		}
	}
	return all
}

// rules of all service accounts, wherever they hold.
func (b *loaded) rules() []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	for _, permissions := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		all = append(all, permissions.Rules...)
	}
	return all
}

func imagesAreRelated(b *loaded) []string {
	var all []string
	for where, image := range b.images() {
		if !slices.Contains(b.related(), image) {
			all = append(all, fmt.Sprintf("%s is %s, which is not among relatedImages", where, image))
		}
	}
	return all
}

func (b *loaded) related() []string {
	var all []string
	for _, image := range b.CSV.Spec.RelatedImages {
		all = append(all, image.Image)
	}
	return all
}

// images that pods run or are told to run, by where they are named.
func (b *loaded) images() map[string]string {
	all := map[string]string{"annotation containerImage": b.CSV.Annotations["containerImage"]}
	for _, container := range b.containers() {
		all["container "+container.Name] = container.Image
	}
	for variable, value := range b.environment() {
		if strings.Contains(variable, "/RELATED_IMAGE_") {
			all["variable "+variable] = value
		}
	}
	return all
}

// restrictedNetwork: a bundle that claims to work disconnected can be mirrored.
func restrictedNetwork(b *loaded) []string {
	var all []string
	if claim := b.CSV.Annotations["features.operators.openshift.io/disconnected"]; claim != "true" {
		all = append(all, "a bundle with digests claims no support for disconnected clusters: "+claim)
	}
	if len(b.related()) == 0 {
		all = append(all, "relatedImages is empty")
	}
	for _, image := range b.related() {
		if !pinned.MatchString(image) {
			all = append(all, image+" has no digest")
		}
	}
	if len(b.images()) <= len(b.containers())+1 {
		all = append(all, "no variable RELATED_IMAGE_… tells the manager what to run")
	}
	return all
}
