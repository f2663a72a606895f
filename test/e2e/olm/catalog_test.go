// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

const catalogImage = "quay.io/example-inc/memcached-operator-catalog"

// catalogTemplate offers both releases as catalog/template.yaml offers the first.
func catalogTemplate() string {
	return fmt.Sprintf(`
schema: olm.template.basic
entries:
- schema: olm.package
  name: %[1]s
  defaultChannel: stable-v1
- schema: olm.channel
  package: %[1]s
  name: stable-v1
  entries:
  - name: %[2]s
  - name: %[3]s
    replaces: %[2]s
    skipRange: '>=%[4]s <%[5]s'
- schema: olm.bundle
  image: %[6]s
- schema: olm.bundle
  image: %[7]s
`, packageName, current.csv(), next.csv(), current.version, next.version, current.image, next.image)
}

// publishCatalog does what docs/releasing.md says, and gives the catalog to the cluster.
func publishCatalog(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	template := filepath.Join(folder, "template.yaml")
	if err := os.WriteFile(template, []byte(catalogTemplate()), 0o600); err != nil {
		return err
	}
	if _, err := tool(ctx, "make", "catalog-build", "catalog-push", "CATALOG_TEMPLATE="+template, "CATALOG_IMG="+local(catalogImage+":test"),
		"OPM_IMG="+local(opmImage), "CONTAINER_TOOL=bin/image"); err != nil {
		return err
	}
	found, err := digest(ctx, catalogImage+":test")
	if err != nil {
		return err
	}
	_, err = framework.TryKubectl(fmt.Sprintf(`
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: %s
  namespace: %s
spec:
  sourceType: grpc
  image: %s@%s
  displayName: Memcached Operator, under test
  grpcPodConfig:
    securityContextConfig: restricted
`, catalogSource, catalogNamespace, catalogImage, found), "apply", "-f", "-")
	return err
}

// Covers what an administrator sees in OperatorHub: the console reads the same PackageManifest.
func TestThePackageIsOnOffer(t *testing.T) {
	framework.Eventually(t, func(g gomega.Gomega) {
		output, err := framework.TryKubectl("", "-n", catalogNamespace, "get", "packagemanifest", packageName, "-o", "json")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		var manifest struct {
			Status struct {
				CatalogSource, DefaultChannel string
				Channels                      []struct {
					Name, CurrentCSV string
					CurrentCSVDesc   struct {
						DisplayName  string
						Icon         []v1alpha1.Icon
						InstallModes []v1alpha1.InstallMode
						Annotations  map[string]string
					}
				}
			}
		}
		g.Expect(json.Unmarshal([]byte(output), &manifest)).To(gomega.Succeed())
		g.Expect(manifest.Status.CatalogSource).To(gomega.Equal(catalogSource))
		g.Expect(manifest.Status.DefaultChannel).To(gomega.Equal("stable-v1"))
		g.Expect(manifest.Status.Channels).To(gomega.HaveLen(1))
		channel := manifest.Status.Channels[0]
		g.Expect(channel.CurrentCSV).To(gomega.Equal(next.csv()))
		g.Expect(channel.CurrentCSVDesc.DisplayName).To(gomega.Equal("Memcached Operator"))
		g.Expect(channel.CurrentCSVDesc.InstallModes).To(gomega.HaveLen(4))
		for _, mode := range channel.CurrentCSVDesc.InstallModes {
			g.Expect(mode.Supported).To(gomega.BeTrue(), string(mode.Type))
		}
		g.Expect(channel.CurrentCSVDesc.Annotations["features.operators.openshift.io/disconnected"]).To(gomega.Equal("true"))
	})
	table := framework.Kubectl(t, catalogNamespace, "get", "packagemanifests")
	if !strings.Contains(table, packageName) {
		t.Errorf("the package isn't in the list:\n%s", table)
	}
	t.Logf("kubectl get packagemanifests:\n%s", table)
}
