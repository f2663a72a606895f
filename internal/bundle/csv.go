// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// base is where the human-written part of the ClusterServiceVersion is.
const base = "config/manifests/bases/" + packageName + ".clusterserviceversion.yaml"

// clusterServiceVersion fills the base with what the other manifests and the release say; images are still those of the
// manifests.
func clusterServiceVersion(from *manifests, release release) (*v1alpha1.ClusterServiceVersion, error) {
	csv := from.csv[0].DeepCopy()
	if err := checkBase(csv, from.crds); err != nil {
		return nil, fmt.Errorf("%s: %w", base, err)
	}
	examples, err := examples(from)
	if err != nil {
		return nil, err
	}
	permissions, clusterPermissions, err := permissions(from)
	if err != nil {
		return nil, err
	}

	csv.Name = bundleName(release.version)
	csv.Spec.Version = version.OperatorVersion{Version: release.version}
	csv.Annotations["alm-examples"] = examples
	csv.Annotations["features.operators.openshift.io/disconnected"] = strconv.FormatBool(release.pinned)
	if release.previous != nil {
		csv.Spec.Replaces = bundleName(*release.previous)
		csv.Annotations[v1alpha1.SkipRangeAnnotationKey] = release.skipRange()
	}
	csv.Spec.InstallStrategy = v1alpha1.NamedInstallStrategy{
		StrategyName: v1alpha1.InstallStrategyNameDeployment,
		StrategySpec: v1alpha1.StrategyDetailsDeployment{
			Permissions:        permissions,
			ClusterPermissions: clusterPermissions,
		},
	}
	strategy := &csv.Spec.InstallStrategy.StrategySpec
	for _, deployment := range from.deployments {
		strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, v1alpha1.StrategyDeploymentSpec{
			Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec,
		})
	}
	return csv, nil
}

// checkBase refuses a base that lacks what every catalog asks for, or whose API isn't the one that we ship.
func checkBase(csv *v1alpha1.ClusterServiceVersion, crds []apiextensionsv1.CustomResourceDefinition) error {
	if len(csv.Spec.Icon) != 1 || csv.Spec.Icon[0].Data == "" || csv.Spec.Icon[0].MediaType == "" {
		return fmt.Errorf("spec.icon is %v: give one icon, with its base64data and its mediatype", csv.Spec.Icon)
	}
	if _, err := base64.StdEncoding.DecodeString(csv.Spec.Icon[0].Data); err != nil {
		return fmt.Errorf("spec.icon[0].base64data is no base64 (%w): give what `base64 -w0` makes of the picture", err)
	}
	for _, text := range []struct{ field, value, remedy string }{
		{"spec.displayName", csv.Spec.DisplayName, "give the name that people see"},
		{"spec.description", csv.Spec.Description, "tell what the operator does, in Markdown"},
		{"spec.provider.name", csv.Spec.Provider.Name, "name who publishes the operator"},
		{"spec.minKubeVersion", csv.Spec.MinKubeVersion, "give the oldest Kubernetes that is supported, such as 1.31.0"},
		{"metadata.annotations.description", csv.Annotations["description"], "tell what the operator does, in one sentence"},
	} {
		if text.value == "" {
			return fmt.Errorf("%s is empty: %s", text.field, text.remedy)
		}
	}
	for _, list := range []struct {
		field  string
		length int
		remedy string
	}{
		{"spec.maintainers", len(csv.Spec.Maintainers), "give a name and an email"},
		{"spec.links", len(csv.Spec.Links), "give a name and a url"},
		{"spec.installModes", len(csv.Spec.InstallModes), "list the four modes, each with supported: true or false"},
	} {
		if list.length == 0 {
			return fmt.Errorf("%s is empty: %s", list.field, list.remedy)
		}
	}
	if createdAt := csv.Annotations["createdAt"]; !isTime(createdAt) {
		return fmt.Errorf("metadata.annotations.createdAt is %q: give a time such as 2026-12-01T00:00:00Z", createdAt)
	}
	return checkOwned(csv, crds)
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// checkOwned compares the APIs that the base describes with those that config/crd defines.
func checkOwned(csv *v1alpha1.ClusterServiceVersion, crds []apiextensionsv1.CustomResourceDefinition) error {
	key := func(name, version, kind string) string { return fmt.Sprintf("%s %s %s", name, version, kind) }
	var described, defined []string
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		described = append(described, key(owned.Name, owned.Version, owned.Kind))
	}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			defined = append(defined, key(crd.Name, version.Name, crd.Spec.Names.Kind))
		}
	}
	slices.Sort(described)
	slices.Sort(defined)
	if !slices.Equal(described, defined) {
		return fmt.Errorf("spec.customresourcedefinitions.owned describes %q, and config/crd defines %q: describe each version of each kind",
			described, defined)
	}
	return nil
}

// permissions are the rights that OLM gives our service accounts: in the namespaces of the OperatorGroup, and everywhere.
func permissions(from *manifests) (namespaced, clusterWide []v1alpha1.StrategyDeploymentPermissions, err error) {
	accounts := from.accountNames()
	rules := map[string]map[string][]rbacv1.PolicyRule{"RoleBinding": {}, "ClusterRoleBinding": {}}
	for _, binding := range from.bindings {
		role := slices.IndexFunc(from.roles, func(role rbacv1.ClusterRole) bool {
			return role.Kind == binding.RoleRef.Kind && role.Name == binding.RoleRef.Name
		})
		if role < 0 {
			return nil, nil, fmt.Errorf("config/manifests: %s grants the %s %s, which isn't there: add it",
				binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name)
		}
		for _, subject := range binding.Subjects {
			if subject.Kind != rbacv1.ServiceAccountKind || !slices.Contains(accounts, subject.Name) {
				return nil, nil, fmt.Errorf("config/manifests: %s has the subject %s %s, which isn't there: name one of the service accounts %q",
					binding.Name, subject.Kind, subject.Name, accounts)
			}
			granted := rules[binding.Kind]
			granted[subject.Name] = append(granted[subject.Name], from.roles[role].Rules...)
		}
	}
	for _, account := range accounts {
		if granted := rules["RoleBinding"][account]; len(granted) > 0 {
			namespaced = append(namespaced, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: granted})
		}
		if granted := rules["ClusterRoleBinding"][account]; len(granted) > 0 {
			clusterWide = append(clusterWide, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: granted})
		}
	}
	return namespaced, clusterWide, nil
}

// asWritten is the ClusterServiceVersion as a person would write it. Its Go type writes a status, which only a cluster
// has, and answers that nobody gave.
func asWritten(csv *v1alpha1.ClusterServiceVersion) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, fmt.Errorf("writing the ClusterServiceVersion: %w", err)
	}
	delete(content, "status")
	for field, unset := range map[string]any{
		"apiservicedefinitions": map[string]any{},
		"cleanup":               map[string]any{"enabled": false},
	} {
		if value, _, _ := unstructured.NestedFieldNoCopy(content, "spec", field); equality.Semantic.DeepEqual(value, unset) {
			unstructured.RemoveNestedField(content, "spec", field)
		}
	}
	return content, nil
}
