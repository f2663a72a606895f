// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are what config/manifests renders to, by what becomes of it in a bundle.
type manifests struct {
	// What the ClusterServiceVersion is made of: its base, and what it takes in.
	csv         []v1alpha1.ClusterServiceVersion
	deployments []appsv1.Deployment
	accounts    []corev1.ServiceAccount
	bindings    []rbacv1.RoleBinding // and ClusterRoleBindings, which differ in nothing but their kind
	roles       []rbacv1.ClusterRole // and Roles
	examples    []unstructured.Unstructured
	// crds define our API.
	crds []apiextensionsv1.CustomResourceDefinition
	// objects are what the bundle holds beside the ClusterServiceVersion: the crds, roles for users, and others.
	objects []unstructured.Unstructured
	// scorecard is the configuration of its tests.
	scorecard []map[string]any
}

// bundled are the kinds of objects, of those that OLM installs from a bundle, that we have a use for.
var bundled = []string{"ClusterRole", "ConfigMap", "CustomResourceDefinition", "PodDisruptionBudget", "PrometheusRule", "Secret", "Service"}

// render does what `kubectl kustomize config/manifests` does, and sorts the result.
func render(config string) (*manifests, error) {
	dir := filepath.Join(config, "manifests")
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	from := &manifests{}
	// What an object is good for can depend on any of the others, so they are all known before that is decided.
	for _, decide := range []func(*resource.Resource) error{from.read, from.sort} {
		for _, object := range rendered.Resources() {
			if err := decide(object); err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", dir, object.GetKind(), object.GetName(), err)
			}
		}
	}
	if len(from.csv) != 1 || len(from.scorecard) != 1 {
		return nil, fmt.Errorf("%s has %d ClusterServiceVersions and %d configurations of the scorecard: list one of each in its kustomization.yaml",
			dir, len(from.csv), len(from.scorecard))
	}
	return from, nil
}

// read decodes an object that something is made of or decided by.
func (m *manifests) read(object *resource.Resource) error {
	switch object.GetKind() {
	case "ClusterServiceVersion":
		return decodeInto(&m.csv, object)
	case "Deployment":
		return decodeInto(&m.deployments, object)
	case "ServiceAccount":
		return decodeInto(&m.accounts, object)
	case "RoleBinding", "ClusterRoleBinding":
		return decodeInto(&m.bindings, object)
	case "Role", "ClusterRole":
		return decodeInto(&m.roles, object)
	case "CustomResourceDefinition":
		return decodeInto(&m.crds, object)
	case "Configuration":
		return decodeInto(&m.scorecard, object)
	}
	return nil
}

// sort finds the examples and the objects that are shipped as they are.
func (m *manifests) sort(object *resource.Resource) error {
	switch kind := object.GetKind(); {
	case m.crd(object.GetGvk().Group, kind) != nil:
		return decodeInto(&m.examples, object)
	case m.bound(kind, object.GetName()):
		return nil // in the ClusterServiceVersion, like those below
	case slices.Contains(bundled, kind):
		return decodeInto(&m.objects, object)
	case slices.Contains([]string{"ClusterServiceVersion", "Deployment", "RoleBinding", "ClusterRoleBinding", "Configuration"}, kind):
		return nil
	case kind == "Namespace", kind == "ServiceAccount":
		return nil // OLM takes the namespace that it is told, and makes each account that has rights
	}
	return fmt.Errorf("our bundle holds no such kind (but %s): leave it out of config/manifests", strings.Join(bundled, ", "))
}

// crd defines a kind of ours, and is nil for any other.
func (m *manifests) crd(group, kind string) *apiextensionsv1.CustomResourceDefinition {
	for i := range m.crds {
		if crd := &m.crds[i]; crd.Spec.Group == group && crd.Spec.Names.Kind == kind {
			return crd
		}
	}
	return nil
}

// bound says whether a role is granted to somebody.
func (m *manifests) bound(kind, role string) bool {
	return slices.ContainsFunc(m.bindings, func(binding rbacv1.RoleBinding) bool {
		return binding.RoleRef.Kind == kind && binding.RoleRef.Name == role
	})
}

// accountNames are those of our service accounts, sorted.
func (m *manifests) accountNames() []string {
	var names []string
	for _, account := range m.accounts {
		names = append(names, account.Name)
	}
	slices.Sort(names)
	return names
}

// decodeInto appends a rendered object in its type, and refuses what the type doesn't have: a misspelled field would
// otherwise be lost without a word.
func decodeInto[T any](list *[]T, object *resource.Resource) error {
	text, err := object.AsYAML()
	if err != nil {
		return err
	}
	var typed T
	if err := yaml.UnmarshalStrict(text, &typed); err != nil {
		return err
	}
	*list = append(*list, typed)
	return nil
}

// fileName is one that operator-sdk would give.
func fileName(object unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	if kind.Kind == "CustomResourceDefinition" {
		plural, group, _ := strings.Cut(object.GetName(), ".")
		return group + "_" + plural + ".yaml"
	}
	parts := []string{object.GetName(), kind.Group, kind.Version, strings.ToLower(kind.Kind)}
	if kind.Group == corev1.GroupName { // it is empty
		parts = slices.Delete(parts, 1, 2)
	}
	return strings.Join(parts, "_") + ".yaml"
}
