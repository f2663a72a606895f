// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	olm "github.com/operator-framework/api/pkg/manifests"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	root        = "../.."
	csvFile     = "bundle/manifests/memcached-operator.clusterserviceversion.yaml"
	crdFile     = "bundle/manifests/cache.example.com_memcacheds.yaml"
	serviceFile = "bundle/manifests/memcached-operator-controller-manager-metrics-service_v1_service.yaml"
	viewerFile  = "bundle/manifests/memcached-operator-memcached-viewer-role_rbac.authorization.k8s.io_v1_clusterrole.yaml"
	tokenFile   = "bundle/manifests/memcached-operator-metrics-token_v1_secret.yaml"
	budgetFile  = "bundle/manifests/memcached-operator-controller-manager_policy_v1_poddisruptionbudget.yaml"
)

// loaded is a bundle as those see it who judge it: read back from its files.
type loaded struct {
	*olm.Bundle
	files       Files
	annotations map[string]string // of metadata/annotations.yaml
	labels      map[string]string // of bundle.Dockerfile
	scorecard   v1alpha3.Configuration
}

func load(t *testing.T, files Files) *loaded {
	t.Helper()
	dir := t.TempDir()
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := olm.GetBundleFromDir(filepath.Join(dir, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	all := &loaded{Bundle: read, files: files, labels: map[string]string{}}

	var metadata struct{ Annotations map[string]string }
	if err := yaml.UnmarshalStrict(files["bundle/metadata/annotations.yaml"], &metadata); err != nil {
		t.Fatal(err)
	}
	all.annotations = metadata.Annotations
	if err := yaml.UnmarshalStrict(files["bundle/tests/scorecard/config.yaml"], &all.scorecard); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(files["bundle.Dockerfile"])) {
		if label, found := strings.CutPrefix(line, "LABEL "); found {
			key, value, _ := strings.Cut(strings.TrimSpace(label), "=")
			all.labels[key] = value
		}
	}
	return all
}

// containers of all Deployments, init containers first.
func (b *loaded) containers() []corev1.Container {
	var all []corev1.Container
	for _, pod := range b.pods() {
		all = slices.Concat(all, pod.InitContainers, pod.Containers)
	}
	return all
}

func (b *loaded) pods() []corev1.PodSpec {
	var all []corev1.PodSpec
	for _, deployment := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		all = append(all, deployment.Spec.Template.Spec)
	}
	return all
}

// environment is every variable of every container, as "container/NAME", with its value.
func (b *loaded) environment() map[string]string {
	all := map[string]string{}
	for _, container := range b.containers() {
		for _, env := range container.Env {
			all[container.Name+"/"+env.Name] = env.Value
		}
	}
	return all
}

func (b *loaded) ofKind(kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(b.Objects), func(object *unstructured.Unstructured) bool { return object.GetKind() != kind })
}

func (b *loaded) examples() []unstructured.Unstructured {
	var all []unstructured.Unstructured
	if err := json.Unmarshal([]byte(b.CSV.Annotations["alm-examples"]), &all); err != nil {
		return nil // the ClusterServiceVersionValidator says so
	}
	return all
}

// request is for a bundle of some version that isn't pinned.
func request() Request {
	return Request{
		Config:         filepath.Join(root, "config"),
		Version:        "0.1.0",
		Channels:       []string{"candidate-v1", "stable-v1"},
		DefaultChannel: "stable-v1",
	}
}

// makeRequest is what `make bundle` asks for.
func makeRequest(t *testing.T) Request {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	variable := func(name string) string {
		match := regexp.MustCompile(`(?m)^` + name + ` \?=(?: (.+))?$`).FindSubmatch(makefile)
		if match == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return string(match[1])
	}
	return Request{
		Config:          filepath.Join(root, "config"),
		Version:         variable("VERSION"),
		PreviousVersion: variable("PREVIOUS_VERSION"),
		Channels:        strings.Split(variable("CHANNELS"), ","),
		DefaultChannel:  variable("DEFAULT_CHANNEL"),
		Images:          map[string]string{"manager": variable("IMAGE_TAG_BASE") + ":v" + variable("VERSION")},
	}
}

// pinnedRequest is what a release asks for. The images are in a registry of the test's own, for several architectures.
func pinnedRequest(t *testing.T) Request {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	asked := request()
	asked.Digest = Digest
	asked.Images = map[string]string{}
	for _, image := range []string{"manager", "kube-rbac-proxy", "memcached"} {
		asked.Images[image] = fmt.Sprintf("%s/somebody/%s:v1", host, image)
		reference, err := name.ParseReference(asked.Images[image])
		if err != nil {
			t.Fatal(err)
		}
		index, err := random.Index(64, 1, 4)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.WriteIndex(reference, index); err != nil {
			t.Fatal(err)
		}
	}
	return asked
}

func build(t *testing.T, asked Request) Files {
	t.Helper()
	files, err := Build(context.Background(), asked)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// committed is the bundle as it is under version control.
func committed(t *testing.T) Files {
	t.Helper()
	files := Files{}
	err := filepath.WalkDir(filepath.Join(root, "bundle"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	if err == nil {
		files["bundle.Dockerfile"], err = os.ReadFile(filepath.Join(root, "bundle.Dockerfile"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// clone can be changed without changing the original.
func (f Files) clone() Files { return maps.Clone(f) }
