// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// remains is what docs/installing.md says that uninstalling leaves, beside Memcacheds and what they consist of.
var remains = []string{
	"APIService v1.cache.example.com",
	"ClusterRole memcached-operator-memcached-admin-role",
	"ClusterRole memcached-operator-memcached-editor-role",
	"ClusterRole memcached-operator-memcached-viewer-role",
	"ClusterRole memcached-operator-metrics-reader",
	"ClusterRole memcacheds.cache.example.com-v1-admin",
	"ClusterRole memcacheds.cache.example.com-v1-crdview",
	"ClusterRole memcacheds.cache.example.com-v1-edit",
	"ClusterRole memcacheds.cache.example.com-v1-view",
	"ClusterRole olm.og.memcached-operator.admin-",
	"ClusterRole olm.og.memcached-operator.edit-",
	"ClusterRole olm.og.memcached-operator.view-",
	"CustomResourceDefinition memcacheds.cache.example.com",
	"Lease memcached-operator.cache.example.com",
	"Operator memcached-operator.NAMESPACE",
	"OperatorGroup memcached-operator",
}

// hash is what OLM makes the names of an OperatorGroup's roles unique by.
var hash = regexp.MustCompile(`^(ClusterRole olm\.og\..*-).*`)

// Covers an installation for all namespaces, and the administrator's last act. Nobody loses a cache by it, and nothing is left that the documentation doesn't name.
func TestUninstallingLeavesWhatTheDocumentationSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(framework.Root(), "docs", "installing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, uninstalling, _ := strings.Cut(string(text), "## Uninstalling")
	for _, object := range remains {
		if _, name, _ := strings.Cut(object, " "); !strings.Contains(uninstalling, "`"+name) {
			t.Errorf("docs/installing.md doesn't say that %s remains", object)
		}
	}

	removeWhatRemains(t)
	namespace, caches := framework.NewNamespace(t), framework.NewNamespace(t)
	// The end of an earlier test's namespace, and what Kubernetes collects after its CRD, may still be under way.
	var before []string
	framework.Eventually(t, func(g gomega.Gomega) {
		before = inventory(t, caches)
		g.Expect(before).NotTo(gomega.ContainElements(gomega.BeElementOf(remains)), "what earlier tests leave")
	})
	since := func(before []string) []string {
		left := slices.DeleteFunc(inventory(t, caches), func(object string) bool { return slices.Contains(before, object) })
		for i := range left {
			left[i] = strings.ReplaceAll(hash.ReplaceAllString(left[i], "$1"), namespace, "NAMESPACE")
		}
		return left
	}
	install(t, namespace, current)
	runsAsOLMInstalledIt(t, namespace)
	rights(t, namespace, []string{namespace, caches}, nil)
	framework.Apply(t, caches, framework.Memcached("cart", "{size: 2}"))
	pods := framework.Serves(t, caches, "cart", 2)

	unsubscribe(t, namespace)
	framework.Eventually(t, func(g gomega.Gomega) {
		g.Expect(cmp.Diff(remains, since(before))).To(gomega.BeEmpty(), "what remains (-want +got)")
	})
	if diff := cmp.Diff(pods, framework.Serves(t, caches, "cart", 2)); diff != "" {
		t.Errorf("pods after uninstalling (-before +after):\n%s", diff)
	}

	framework.Kubectl(t, "", "delete", "crd", crd, "--timeout=2m")
	framework.LeavesNothing(t, caches, "cart")
	framework.Kubectl(t, "", append([]string{"delete", "clusterrole"}, rolesForUsers...)...)
	framework.Kubectl(t, namespace, "delete", "lease", "memcached-operator.cache.example.com")
	framework.Kubectl(t, namespace, "delete", "operatorgroup", packageName)
	framework.Kubectl(t, "", "delete", "operator", packageName+"."+namespace)
	framework.Eventually(t, func(g gomega.Gomega) { g.Expect(since(before)).To(gomega.BeEmpty(), "what remains after all") })
}

// passing are kinds of which objects come and go by themselves, such as the Jobs by which OLM unpacks bundles.
var passing = []string{"jobs.batch", "pods", "events", "events.events.k8s.io", "packagemanifests.packages.operators.coreos.com"}

// inventory lists all objects of the cluster but those in a namespace of users.
func inventory(t *testing.T, except string) []string {
	t.Helper()
	kinds := strings.Fields(framework.Kubectl(t, "", "api-resources", "--verbs=list", "--output=name"))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return slices.Contains(passing, kind) })
	table := framework.Kubectl(t, "", "get", strings.Join(kinds, ","), "--all-namespaces", "--ignore-not-found", "--no-headers",
		"--output=custom-columns=NAMESPACE:.metadata.namespace,KIND:.kind,NAME:.metadata.name")
	var objects []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if fields[0] != except {
			objects = append(objects, fields[1]+" "+fields[2])
		}
	}
	slices.Sort(objects)
	return slices.Compact(objects)
}
