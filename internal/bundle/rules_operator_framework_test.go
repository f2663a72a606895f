// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/crds"
	"github.com/operator-framework/api/pkg/validation"
	validationerrors "github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	corev1 "k8s.io/api/core/v1"
)

// operatorFrameworkRules are the validators of operator-framework/api, which `operator-sdk bundle validate` runs too, and
// what operator-registry asks of a bundle before it goes into a catalog. A warning counts like an error.
func operatorFrameworkRules() []rule {
	all := []rule{
		{name: "operator-framework/MultipleArchitecturesValidator (static part)", check: multipleArchitectures},
		{name: "operator-lifecycle-manager/ClusterServiceVersions are accepted", check: acceptedByOLM},
		{name: "operator-registry/ValidateBundleFormat", check: bundleFormat},
		{name: "operator-registry/ValidateBundleContent", check: bundleContent},
	}
	for name, validator := range map[string]interfaces.Validator{
		"ClusterServiceVersionValidator":    validation.ClusterServiceVersionValidator,
		"CustomResourceDefinitionValidator": validation.CustomResourceDefinitionValidator,
		"BundleValidator":                   validation.BundleValidator,
		"OperatorHubV2Validator":            validation.OperatorHubV2Validator,
		"StandardCategoriesValidator":       validation.StandardCategoriesValidator,
		"StandardCapabilitiesValidator":     validation.StandardCapabilitiesValidator,
		"ObjectValidator":                   validation.ObjectValidator,
		"CommunityOperatorValidator":        validation.CommunityOperatorValidator,
		"AlphaDeprecatedAPIsValidator":      validation.AlphaDeprecatedAPIsValidator,
		"GoodPracticesValidator":            validation.GoodPracticesValidator,
	} {
		all = append(all, rule{name: "operator-framework/" + name, check: validated(validator)})
	}
	slices.SortFunc(all, func(a, b rule) int { return strings.Compare(a.name, b.name) })
	return all
}

func validated(validators ...interfaces.Validator) func(*loaded) []string {
	return func(b *loaded) []string {
		objects := append(b.ObjectsToValidate(), map[string]string{"k8s-version": "1.31"})
		var all []string
		for _, validator := range validators {
			for _, result := range validator.Validate(objects...) {
				for _, problem := range slices.Concat(result.Errors, result.Warnings) {
					all = append(all, validationerrors.Error(problem).Error())
				}
			}
		}
		return all
	}
}

// multipleArchitectures: the platforms of the labels are those that the pods are bound to.
func multipleArchitectures(b *loaded) []string {
	supported := func(prefix string) []string {
		var all []string
		for label, value := range b.CSV.Labels {
			if name, found := strings.CutPrefix(label, "operatorframework.io/"+prefix+"."); found && value == "supported" {
				all = append(all, name)
			}
		}
		slices.Sort(all)
		return all
	}
	var all []string
	if !slices.ContainsFunc(b.containers(), func(container corev1.Container) bool { return container.Name == "manager" }) {
		all = append(all, "no container is called manager: the validator would take any for it")
	}
	for _, pod := range b.pods() {
		for key, want := range map[string][]string{"kubernetes.io/arch": supported("arch"), "kubernetes.io/os": supported("os")} {
			if got := requiredNodes(pod, key); !slices.Equal(want, got) {
				all = append(all, fmt.Sprintf("labels say that %q of %s are supported, and the pods ask for %q", want, key, got))
			}
		}
	}
	return all
}

// requiredNodes are the values of a label that a pod's required node affinity allows.
func requiredNodes(pod corev1.PodSpec, label string) []string {
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var values []string
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if expression.Key == label && expression.Operator == corev1.NodeSelectorOpIn {
				values = append(values, expression.Values...)
			}
		}
	}
	slices.Sort(values)
	return values
}

// acceptedByOLM: the API server checks a ClusterServiceVersion by the CRD that OLM comes with. It would drop what the CRD
// doesn't know.
func acceptedByOLM(b *loaded) []string {
	var all []string
	for _, csv := range b.ofKind("ClusterServiceVersion") {
		if err := accepts(crds.ClusterServiceVersion(), *csv); err != nil {
			all = append(all, err.Error())
		}
	}
	return all
}

// bundleFormat: the annotations say where things are, and the image's labels say the same.
func bundleFormat(b *loaded) []string {
	var all []string
	for key, want := range map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
		"operators.operatorframework.io.bundle.package.v1":   packageName,
		"operators.operatorframework.io.test.mediatype.v1":   "scorecard+v1",
		"operators.operatorframework.io.test.config.v1":      "tests/scorecard/",
	} {
		if got := b.annotations[key]; got != want {
			all = append(all, fmt.Sprintf("annotation %s is %q, want %q", key, got, want))
		}
	}
	channels := strings.Split(b.annotations["operators.operatorframework.io.bundle.channels.v1"], ",")
	if defaultChannel := b.annotations["operators.operatorframework.io.bundle.channel.default.v1"]; !slices.Contains(channels, defaultChannel) {
		all = append(all, fmt.Sprintf("the default channel is %q, which is not among %q", defaultChannel, channels))
	}
	keys := maps.Clone(b.annotations)
	maps.Copy(keys, b.labels)
	for key := range keys {
		if b.annotations[key] != b.labels[key] {
			all = append(all, fmt.Sprintf("%s is %q in annotations.yaml and %q among the labels of bundle.Dockerfile", key, b.annotations[key], b.labels[key]))
		}
	}
	for _, folder := range []string{"manifests", "metadata", "tests/scorecard"} {
		if line := "COPY bundle/" + folder + " /" + folder + "/\n"; !strings.Contains(string(b.files["bundle.Dockerfile"]), line) {
			all = append(all, "bundle.Dockerfile has no line "+line)
		}
	}
	return all
}

// bundleContent: every manifest is of a kind that OLM installs from a bundle.
func bundleContent(b *loaded) []string {
	var all []string
	for _, object := range b.Objects {
		if object.GetAPIVersion() == "" || object.GetName() == "" || !slices.Contains(installable, object.GetKind()) {
			all = append(all, fmt.Sprintf("OLM doesn't install %s %s", object.GetKind(), object.GetName()))
		}
	}
	return all
}

// installable are the kinds that operator-registry lets into a bundle.
var installable = []string{
	"ClusterRole", "ClusterRoleBinding", "ClusterServiceVersion", "ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin",
	"ConsoleQuickStart", "ConsoleYAMLSample", "CustomResourceDefinition", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor",
	"PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler",
}
