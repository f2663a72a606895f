// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package config_test checks what kustomize makes of the manifests beside it. The manifests have no other compiler.
package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/example-inc/memcached-operator/internal/monitoring"
	"github.com/example-inc/memcached-operator/internal/options"
)

// variants are the forms in which the operator is installed.
var variants = []string{"default", "kubernetes"}

const prefix = "memcached-operator-"

// selector of the operator's Deployment. It can't be changed in a cluster, so an upgrade that changes it gets stuck:
// should this test fail, the manifest is wrong and not the test.
var selector = map[string]string{
	"app.kubernetes.io/name": "memcached-operator",
	"control-plane":          "controller-manager",
}

func TestEveryKustomizationRendersWithoutWarnings(t *testing.T) {
	for _, dir := range []string{
		"crd", "default", "kubernetes", "manager", "manifests", "monitoring", "prometheus", "rbac", "samples", "samples/production", "scorecard", "scraper",
	} {
		t.Run(dir, func(t *testing.T) {
			objects, warnings := render(t, dir)
			if objects.Size() == 0 {
				t.Error("nothing was rendered")
			}
			if warnings != "" {
				t.Errorf("kustomize warns: %s", warnings)
			}
		})
	}
}

func TestManagerPodsMeetPodSecurityRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}

	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) {
			pod := manager(t, variant).Spec.Template
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
			if !result.Allowed {
				t.Error(result.ForbiddenDetail())
			}
			namespace := get[corev1.Namespace](t, variant, "Namespace", prefix+"system")
			if got := namespace.Labels[psa.EnforceLevelLabel]; got != string(psa.LevelRestricted) {
				t.Errorf("the namespace enforces %q", got)
			}
		})
	}
}

func TestOpenShiftChoosesTheUserOfManagerPods(t *testing.T) {
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) {
			pod := manager(t, variant).Spec.Template.Spec
			if pod.SecurityContext.RunAsUser != nil || pod.SecurityContext.RunAsGroup != nil || pod.SecurityContext.FSGroup != nil {
				t.Errorf("the pod sets a user or group: %+v", pod.SecurityContext)
			}
			for _, container := range pod.Containers {
				if container.SecurityContext.RunAsUser != nil || container.SecurityContext.RunAsGroup != nil {
					t.Errorf("container %s sets a user or group: %+v", container.Name, container.SecurityContext)
				}
			}
		})
	}
}

func TestEveryContainerRequestsResourcesAndWritesNowhere(t *testing.T) {
	for _, variant := range variants {
		for _, container := range manager(t, variant).Spec.Template.Spec.Containers {
			t.Run(variant+"/"+container.Name, func(t *testing.T) {
				for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
					if request := container.Resources.Requests[resource]; request.Sign() != 1 {
						t.Errorf("no request for %s", resource)
					}
				}
				if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited {
					t.Error("a CPU limit throttles the start")
				}
				if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
					t.Error("the root file system is writable")
				}
				if container.LivenessProbe == nil || container.ReadinessProbe == nil {
					t.Error("a probe is missing")
				}
			})
		}
	}
}

func TestSelectorsAreFrozenAndMatchTheManagerPods(t *testing.T) {
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) {
			deployment := manager(t, variant)
			if diff := cmp.Diff(selector, deployment.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("Deployment (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(selector, deployment.Spec.Template.Labels); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			budget := get[policyv1.PodDisruptionBudget](t, variant, "PodDisruptionBudget", prefix+"controller-manager")
			if diff := cmp.Diff(selector, budget.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("PodDisruptionBudget (-want +got):\n%s", diff)
			}
			service := get[corev1.Service](t, variant, "Service", prefix+"controller-manager-metrics-service")
			if diff := cmp.Diff(selector, service.Spec.Selector); diff != "" {
				t.Errorf("metrics Service (-want +got):\n%s", diff)
			}
		})
	}
}

// The operator's cache holds what carries this label, and its own objects have no business there.
func TestNothingOfTheOperatorItselfIsMarkedAsCreatedByIt(t *testing.T) {
	for _, variant := range variants {
		objects, _ := render(t, variant)
		for _, object := range objects.Resources() {
			if object.GetLabels()["app.kubernetes.io/managed-by"] == "memcached-operator" {
				t.Errorf("%s: %s is labelled as managed by the operator", variant, object.CurId())
			}
		}
	}
}

func TestMetricsAreNeverServedToStrangers(t *testing.T) {
	t.Run("on OpenShift the manager serves the sidecar alone", func(t *testing.T) {
		pod := manager(t, "default").Spec.Template.Spec
		args := container(t, pod, "manager").Args
		for _, want := range []string{"--metrics-bind-address=127.0.0.1:8080", "--metrics-secure=false"} {
			if !slices.Contains(args, want) {
				t.Errorf("no %s in %q", want, args)
			}
		}
		sidecar := container(t, pod, "kube-rbac-proxy")
		if want := "--upstream=http://127.0.0.1:8080/"; !slices.Contains(sidecar.Args, want) {
			t.Errorf("no %s in %q", want, sidecar.Args)
		}

		service := get[corev1.Service](t, "default", "Service", prefix+"controller-manager-metrics-service")
		certificate := service.Annotations["service.beta.openshift.io/serving-cert-secret-name"]
		mounted := slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool {
			return volume.Secret != nil && volume.Secret.SecretName == certificate
		})
		if certificate == "" || !mounted {
			t.Errorf("the service CA fills the Secret %q, and the pod mounts another: %+v", certificate, pod.Volumes)
		}
	})

	t.Run("on plain Kubernetes the manager authenticates and encrypts", func(t *testing.T) {
		pod := manager(t, "kubernetes").Spec.Template.Spec
		if len(pod.Containers) != 1 {
			t.Errorf("there is a sidecar: %d containers", len(pod.Containers))
		}
		args := container(t, pod, "manager").Args
		for _, want := range []string{"--metrics-bind-address=:8443", "--metrics-secure=true"} {
			if !slices.Contains(args, want) {
				t.Errorf("no %s in %q", want, args)
			}
		}
	})
}

// The manager makes the ServiceMonitor out of names that it knows, so it must know the right ones. That it has the rights
// to, and what it makes of them, is tested in internal/monitoring.
func TestManagerKnowsWhatIsInstalledForItsMonitoring(t *testing.T) {
	if got, want := serviceMonitorNamespace(t, "default"), "metadata.namespace"; got != want {
		t.Errorf("the manager is told %q for its namespace, want %q", got, want)
	}
	if got := serviceMonitorNamespace(t, "kubernetes"); got != "" {
		t.Errorf("the manager keeps a ServiceMonitor where there is no service CA: it is told %q", got)
	}
	get[appsv1.Deployment](t, "default", "Deployment", monitoring.Deployment)
	selectsMetricsService(t, "default", monitoring.Labels(), monitoring.Port)

	bundle := get[corev1.ConfigMap](t, "default", "ConfigMap", monitoring.CABundle)
	if got := bundle.Annotations["service.beta.openshift.io/inject-cabundle"]; got != "true" {
		t.Errorf("the service CA doesn't fill %s: its annotation is %q", bundle.Name, got)
	}
	token := get[corev1.Secret](t, "default", "Secret", monitoring.Token)
	if token.Type != corev1.SecretTypeOpaque || len(token.Data)+len(token.StringData) > 0 {
		t.Errorf("Secret %s is not an empty one for the manager to fill: %v", token.Name, token)
	}
	get[corev1.ServiceAccount](t, "default", "ServiceAccount", monitoring.Scraper)
}

func TestServiceMonitorForPlainKubernetesFindsTheMetrics(t *testing.T) {
	monitor := get[struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  metav1.LabelSelector `json:"selector"`
			Endpoints []struct {
				Port          string         `json:"port"`
				Scheme        string         `json:"scheme"`
				TLSConfig     map[string]any `json:"tlsConfig"`
				Authorization struct {
					Type        string                   `json:"type"`
					Credentials corev1.SecretKeySelector `json:"credentials"`
				} `json:"authorization"`
			} `json:"endpoints"`
		} `json:"spec"`
	}](t, "prometheus", "ServiceMonitor", monitoring.ServiceMonitor)
	if len(monitor.Spec.Endpoints) != 1 {
		t.Fatalf("it has %d endpoints", len(monitor.Spec.Endpoints))
	}
	scraped := monitor.Spec.Endpoints[0]
	selectsMetricsService(t, "kubernetes", monitor.Spec.Selector.MatchLabels, scraped.Port)
	if scraped.Scheme != "https" || scraped.Authorization.Type != "Bearer" {
		t.Errorf("it scrapes by %q, with %q", scraped.Scheme, scraped.Authorization.Type)
	}
	token := get[corev1.Secret](t, "prometheus", "Secret", scraped.Authorization.Credentials.Name)
	get[corev1.ServiceAccount](t, "prometheus", "ServiceAccount", token.Annotations[corev1.ServiceAccountNameKey])
}

// selectsMetricsService checks that labels select the metrics Service, and by all that it has to tell it from others.
func selectsMetricsService(t *testing.T, variant string, labels map[string]string, port string) {
	t.Helper()
	service := get[corev1.Service](t, variant, "Service", monitoring.Service)
	if diff := cmp.Diff(service.Labels, labels); diff != "" {
		t.Errorf("labels of the metrics Service (-labels +selected):\n%s", diff)
	}
	if got := service.Spec.Ports[0].Name; got != port {
		t.Errorf("its port is called %q, and %q is scraped", got, port)
	}
}

// serviceMonitorNamespace is the field of the pod that tells the manager where to keep a ServiceMonitor, empty for none.
func serviceMonitorNamespace(t *testing.T, variant string) string {
	t.Helper()
	for _, env := range container(t, manager(t, variant).Spec.Template.Spec, "manager").Env {
		if env.Name == options.ServiceMonitorNamespace {
			return env.ValueFrom.FieldRef.FieldPath
		}
	}
	return ""
}

// The sidecar's patch replaces the manager's arguments and says them all again.
func TestVariantsDifferOnlyInTheArgumentsForMetrics(t *testing.T) {
	others := func(variant string) []string {
		args := container(t, manager(t, variant).Spec.Template.Spec, "manager").Args
		return slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--metrics-") })
	}
	if diff := cmp.Diff(others("kubernetes"), others("default")); diff != "" {
		t.Errorf("(-kubernetes +default):\n%s", diff)
	}
}

// Users are given view, edit or admin in their namespace, not roles that they would have to know of.
func TestUserRolesAggregateAndCanScale(t *testing.T) {
	for role, scale := range map[string][]string{
		"view":  {"get"},
		"edit":  {"get", "patch", "update"},
		"admin": {"get", "patch", "update"},
	} {
		t.Run(role, func(t *testing.T) {
			ours := map[string]string{"view": "viewer", "edit": "editor", "admin": "admin"}[role]
			clusterRole := get[rbacv1.ClusterRole](t, "kubernetes", "ClusterRole", prefix+"memcached-"+ours+"-role")

			var aggregates []string
			for label, value := range clusterRole.Labels {
				if target, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok && value == "true" {
					aggregates = append(aggregates, target)
				}
			}
			if diff := cmp.Diff([]string{role}, aggregates); diff != "" {
				t.Errorf("aggregates to (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(scale, verbs(clusterRole, "memcacheds/scale")); diff != "" {
				t.Errorf("verbs on memcacheds/scale (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"get"}, verbs(clusterRole, "memcacheds/status")); diff != "" {
				t.Errorf("verbs on memcacheds/status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoRoleHasWildcards(t *testing.T) {
	objects, _ := render(t, "default") // has all that kubernetes has
	for _, object := range objects.Resources() {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		role := decode[rbacv1.ClusterRole](t, object)
		for _, rule := range role.Rules {
			if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
				t.Errorf("%s has a wildcard: %v", role.Name, rule)
			}
		}
	}
}

func TestImagesComeFromTheImagesFile(t *testing.T) {
	images := readImages(t)
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	variable := func(name string) string {
		match := regexp.MustCompile(`(?m)^` + name + ` \?= (.+)$`).FindSubmatch(makefile)
		if match == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return string(match[1])
	}
	base, version := variable("IMAGE_TAG_BASE"), variable("VERSION")

	want := map[string]string{
		"manager":         base + ":v" + version,
		"bundle":          base + "-bundle:v" + version,
		"catalog":         base + "-catalog:v" + version,
		"kube-rbac-proxy": "registry.redhat.io/openshift4/ose-kube-rbac-proxy-rhel9:v4.18",
		"memcached":       "docker.io/library/memcached:1.6.45",
		"opm":             "quay.io/operator-framework/opm:" + pinnedOPM(t),
		"scorecard-test":  "quay.io/operator-framework/scorecard-test:v1.42.3",
	}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("images/images.env (-want +got):\n%s", diff)
	}

	for variant, containers := range map[string][]string{
		"default":    {"kube-rbac-proxy", "manager"},
		"kubernetes": {"manager"},
	} {
		t.Run(variant, func(t *testing.T) {
			pod := manager(t, variant).Spec.Template.Spec
			got := map[string]string{}
			for _, container := range pod.Containers {
				got[container.Name] = container.Image
			}
			if diff := cmp.Diff(containers, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
			for name, image := range got {
				if image != images[name] {
					t.Errorf("container %s runs %q", name, image)
				}
			}
			for _, env := range container(t, pod, "manager").Env {
				if name, ok := strings.CutPrefix(env.Name, "RELATED_IMAGE_"); ok && env.Value != images[strings.ToLower(name)] {
					t.Errorf("%s=%q", env.Name, env.Value)
				}
			}
			objects, _ := render(t, variant)
			for _, object := range objects.Resources() {
				if object.GetKind() == "ConfigMap" && object.GetName() != monitoring.CABundle {
					t.Errorf("%s was left in the result", object.CurId())
				}
			}
		})
	}
}

// render does what `kubectl kustomize` does, and returns what it says on standard error too.
func render(t *testing.T, dir string) (objects resmap.ResMap, warnings string) {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close() //nolint:errcheck // it was only written to, and is read by name

	stderr := os.Stderr
	os.Stderr = said // kustomize prints its warnings there and nowhere else
	objects, err = krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	os.Stderr = stderr
	if err != nil {
		t.Fatalf("rendering %s: %v", dir, err)
	}

	all, err := os.ReadFile(said.Name())
	if err != nil {
		t.Fatal(err)
	}
	return objects, strings.TrimSpace(string(all))
}

// manager is the operator's Deployment in a variant.
func manager(t *testing.T, variant string) *appsv1.Deployment {
	t.Helper()
	return get[appsv1.Deployment](t, variant, "Deployment", prefix+"controller-manager")
}

// get is the one rendered object of that kind and name.
func get[T any](t *testing.T, dir, kind, name string) *T {
	t.Helper()
	objects, _ := render(t, dir)
	for _, object := range objects.Resources() {
		if object.GetKind() == kind && object.GetName() == name {
			return decode[T](t, object)
		}
	}
	t.Fatalf("%s has no %s %s", dir, kind, name)
	return nil
}

// decode turns a rendered object into its type, and refuses fields that the type doesn't have.
func decode[T any](t *testing.T, object interface{ AsYAML() ([]byte, error) }) *T {
	t.Helper()
	manifest, err := object.AsYAML()
	if err != nil {
		t.Fatal(err)
	}
	typed := new(T)
	if err := yaml.UnmarshalStrict(manifest, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

func container(t *testing.T, pod corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	for _, container := range pod.Containers {
		if container.Name == name {
			return container
		}
	}
	t.Fatalf("no container %s", name)
	return corev1.Container{}
}

// verbs that a role allows on a resource of our API.
func verbs(role *rbacv1.ClusterRole, resource string) []string {
	var all []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, "cache.example.com") && slices.Contains(rule.Resources, resource) {
			all = append(all, rule.Verbs...)
		}
	}
	slices.Sort(all)
	return all
}

// pinnedOPM is the version of the opm that makes the cache which the one in the catalog's image reads.
func pinnedOPM(t *testing.T) string {
	t.Helper()
	module, err := os.ReadFile("../hack/tools/opm/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^\tgithub.com/operator-framework/operator-registry (\S+)`).FindSubmatch(module)
	if match == nil {
		t.Fatal("hack/tools/opm/go.mod doesn't require operator-registry")
	}
	return string(match[1])
}

func readImages(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.ReadFile("images/images.env")
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, image, found := strings.Cut(line, "=")
		if !found || images[name] != "" {
			t.Fatalf("images.env: %q", line)
		}
		images[name] = image
	}
	return images
}
