// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package olm tests the operator as administrators get it: from a catalog, by the Operator Lifecycle Manager. What the
// operator does with Memcacheds, however it was installed, is tested in the folder above.
//
// `make e2e-olm` runs it, on the local cluster only, since it needs that cluster's registry. All images are there and
// nowhere else, the bundles name them by digest, and the node finds them by the mirror that it is configured with: each
// installation is one of a disconnected cluster.
package olm

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

const (
	packageName = "memcached-operator"
	deployment  = "memcached-operator-controller-manager"
	crd         = "memcacheds.cache.example.com"
	// catalogNamespace is where OLM looks for catalogs that all namespaces may use.
	catalogNamespace = "olm"
	catalogSource    = "memcached-operator-test"

	// busybox has the few tools that operator-sdk unpacks with; hack/olm pushes it by this name.
	busybox = "registry.access.redhat.com/ubi9/ubi:9.8"
)

// opmImage is what catalogs are based on; hack/olm pushes it too.
var opmImage = os.Getenv("OPM_IMG")

// The release of this checkout, and one that comes after it and differs in what an upgrade can change: the manager's
// image, the default memcached image, and the CRD. `make e2e-olm` has pushed the managers.
var (
	current = release{
		version:   "0.1.0",
		manager:   "quay.io/example-inc/memcached-operator:v0.1.0",
		memcached: "docker.io/library/memcached:1.6.45",
	}
	next = release{
		version:   "0.2.0",
		manager:   "quay.io/example-inc/memcached-operator:next",
		memcached: "docker.io/library/memcached:1.6.44",
		replaces:  &current,
	}
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(onClusterWithOLM(m.Run))
}

func onClusterWithOLM(run func() int) (code int) {
	fail := func(doing string, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: %s: %v\n", doing, err)
			code = 1
		}
	}
	begin := time.Now()
	folder, err := os.MkdirTemp("", "releases-")
	if err == nil {
		err = prepare(context.Background(), folder)
	}
	fail("preparing the cluster", err)
	fmt.Printf("prepared in %.0f s\n", time.Since(begin).Seconds())
	if code == 0 {
		code = run()
		fail("removing the namespaces of the tests", framework.RemoveNamespaces())
	}
	fail("removing the releases", os.RemoveAll(folder))
	return code
}

// prepare makes the cluster one of an administrator who has a catalog with both releases, which are made in the folder.
func prepare(ctx context.Context, folder string) error {
	if err := framework.Connect(v1alpha1.AddToScheme, operatorsv1.AddToScheme, operatorsv2.AddToScheme, apiextensionsv1.AddToScheme); err != nil {
		return err
	}
	if err := findRegistry(filepath.Join(folder, "registries.conf")); err != nil {
		return err
	}
	for _, each := range []*release{&current, &next} {
		if err := each.publish(ctx, filepath.Join(folder, each.version)); err != nil {
			return fmt.Errorf("publishing release %s: %w", each.version, err)
		}
	}
	if err := publishCatalog(ctx, filepath.Join(folder, "catalog")); err != nil {
		return fmt.Errorf("publishing the catalog: %w", err)
	}
	return framework.StartClient()
}
