// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// pipelineRules are the static checks of the community and the certified catalogs. They also run the validators of
// operatorFrameworkRules, by way of `operator-sdk bundle validate`.
func pipelineRules() []rule {
	return []rule{
		{name: "common/check_operator_name", check: operatorName},
		{name: "common/check_network_policy_presence", check: noNetworkPolicy},
		{name: "community/check_required_fields", check: requiredFields},
		{name: "community/check_api_version_constraints", check: apiVersionConstraints},
		{name: "certified/check_marketplace_annotation", check: noMarketplace},
		{name: "certified/check_pruned_graph", check: boundedSkipRange},
	}
}

// conformaRules are those that Red Hat's own builds must meet; what they ask makes sense for others too.
func conformaRules() []rule {
	return []rule{
		{name: "conforma/csv_semver_format", check: versionIsSemver},
		{name: "conforma/feature_annotations_format", check: requiredAnnotations},
		{name: "conforma/subscriptions_annotation_format", check: subscriptions},
		{name: "conforma/unpinned_references", pinned: true, check: unpinnedReferences},
		{name: "conforma/unpinned_related_images", pinned: true, check: unpinnedRelatedImages},
	}
}

func operatorName(b *loaded) []string {
	version := b.CSV.Spec.Version.String()
	if want := b.Package + ".v" + version; b.CSV.Name != want {
		return []string{fmt.Sprintf("the ClusterServiceVersion is called %s, want %s", b.CSV.Name, want)}
	}
	return nil
}

func noNetworkPolicy(b *loaded) []string {
	if len(b.ofKind("NetworkPolicy")) > 0 {
		return []string{"the catalogs' pipelines refuse a NetworkPolicy in a bundle"}
	}
	return nil
}

func requiredFields(b *loaded) []string {
	spec, annotations := b.CSV.Spec, b.CSV.Annotations
	var all []string
	for field, right := range map[string]bool{
		"spec.displayName: 3 to 50 characters":    len(spec.DisplayName) >= 3 && len(spec.DisplayName) <= 50,
		"spec.description: 20 characters or more": len(spec.Description) >= 20,
		"spec.icon: one with data and media type": len(spec.Icon) == 1 && spec.Icon[0].Data != "" && spec.Icon[0].MediaType != "",
		"spec.version": spec.Version.String() != "0.0.0",
		"spec.provider.name: 3 characters or more": len(spec.Provider.Name) >= 3,
		"spec.keywords": len(spec.Keywords) > 0,
		"spec.maturity": spec.Maturity != "",
		"spec.maintainers: each with a name and an email":  len(spec.Maintainers) > 0 && !slices.ContainsFunc(spec.Maintainers, namelessMaintainer),
		"spec.links: each with a name and a url":           len(spec.Links) > 0 && !slices.ContainsFunc(spec.Links, brokenLink),
		"annotation categories":                            annotations["categories"] != "",
		"annotation capabilities":                          annotations["capabilities"] != "",
		"annotation containerImage: an image with its tag": regexp.MustCompile(`^([^/]+/)+[^/:]+:.+$`).MatchString(annotations["containerImage"]),
		"annotation createdAt: a time":                     isTime(annotations["createdAt"]),
		"annotation repository":                            annotations["repository"] != "",
		"annotation support":                               annotations["support"] != "",
		"annotation description: 10 characters or more":    len(annotations["description"]) >= 10,
	} {
		if !right {
			all = append(all, field)
		}
	}
	return all
}

func namelessMaintainer(maintainer v1alpha1.Maintainer) bool {
	_, err := mail.ParseAddress(maintainer.Email)
	return maintainer.Name == "" || err != nil
}

func brokenLink(link v1alpha1.AppLink) bool {
	_, err := url.ParseRequestURI(link.URL)
	return link.Name == "" || err != nil
}

// kubernetesOf is the Kubernetes in each OpenShift 4.
var kubernetesOf = map[string]string{
	"v4.16": "1.29.0", "v4.17": "1.30.0", "v4.18": "1.31.0", "v4.19": "1.32.0",
	"v4.20": "1.33.0", "v4.21": "1.34.0", "v4.22": "1.35.0", "v4.23": "1.36.0",
}

// apiVersionConstraints: no OpenShift whose catalog takes the bundle has an older Kubernetes than the bundle asks for.
func apiVersionConstraints(b *loaded) []string {
	from := b.annotations["com.redhat.openshift.versions"]
	shipped, known := kubernetesOf[from]
	if !known {
		return []string{fmt.Sprintf("com.redhat.openshift.versions is %q, want one of %q", from, slices.Sorted(maps.Keys(kubernetesOf)))}
	}
	needed, err := semver.Parse(b.CSV.Spec.MinKubeVersion)
	if err != nil || needed.GT(semver.MustParse(shipped)) {
		return []string{fmt.Sprintf("minKubeVersion is %q, and OpenShift %s has Kubernetes %s", b.CSV.Spec.MinKubeVersion, from, shipped)}
	}
	return nil
}

func noMarketplace(b *loaded) []string {
	var all []string
	for key := range b.CSV.Annotations {
		if strings.HasPrefix(key, "marketplace.openshift.io/") {
			all = append(all, "annotation "+key+" is for Red Hat's marketplace only")
		}
	}
	return all
}

// boundedSkipRange: without replaces, or without a lower bound, a skipRange cuts older versions out of a channel.
func boundedSkipRange(b *loaded) []string {
	skipRange, found := b.CSV.Annotations[v1alpha1.SkipRangeAnnotationKey]
	if !found {
		return nil
	}
	var all []string
	if b.CSV.Spec.Replaces == "" {
		all = append(all, "skipRange without replaces")
	}
	if !strings.HasPrefix(skipRange, ">=") || !strings.HasSuffix(skipRange, " <"+b.CSV.Spec.Version.String()) {
		all = append(all, "skipRange isn't bounded on both sides, up to this version: "+skipRange)
	}
	return all
}

func versionIsSemver(b *loaded) []string {
	_, text, _ := strings.Cut(string(b.files[csvFile]), "\n  version: ")
	text, _, _ = strings.Cut(text, "\n") // as it is written: its Go type is more tolerant
	if _, err := semver.Parse(text); err != nil {
		return []string{fmt.Sprintf("spec.version is %q: %v", text, err)}
	}
	return nil
}

func subscriptions(b *loaded) []string {
	var names []string
	text := b.CSV.Annotations["operators.openshift.io/valid-subscription"]
	if err := json.Unmarshal([]byte(text), &names); err != nil || len(names) == 0 || slices.Contains(names, "") {
		return []string{fmt.Sprintf("annotation operators.openshift.io/valid-subscription is %q, want a list of names in JSON", text)}
	}
	return nil
}

func unpinnedReferences(b *loaded) []string {
	images := b.images()
	for key, value := range b.CSV.Annotations {
		if imageLike.MatchString(value) {
			images["annotation "+key] = value
		}
	}
	var all []string
	for where, image := range images {
		if !pinned.MatchString(image) {
			all = append(all, fmt.Sprintf("%s is %s, which has no digest", where, image))
		}
	}
	return all
}

func unpinnedRelatedImages(b *loaded) []string {
	return slices.DeleteFunc(b.related(), pinned.MatchString)
}
