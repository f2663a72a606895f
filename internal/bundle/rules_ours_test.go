// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ourRules are those that users of other operators paid for.
func ourRules() []rule {
	return []rule{
		{name: "ours/name and selector of the Deployment are frozen", check: frozenDeployment},
		{name: "ours/no user or group is chosen", check: noUserOrGroup},
		{name: "ours/secrets that are mounted are provided", check: secretsAreProvided},
		{name: "ours/Secrets come empty", check: secretsAreEmpty},
		{name: "ours/volumes and mounts belong together", check: volumesAreMounted},
		{name: "ours/files named in arguments are mounted", check: argumentsNameMountedFiles},
		{name: "ours/containers request, don't write, and say why they end", check: containersBehave},
		{name: "ours/two replicas that stay apart and survive a drain", check: highlyAvailable},
		{name: "ours/rights hold where the OperatorGroup says", check: rightsAreNamespaced},
		{name: "ours/no wildcard rights", check: noWildcards},
		{name: "ours/rights to Secrets and tokens are to one by name", check: credentialsByName},
		{name: "ours/all four install modes", check: installModes},
		{name: "ours/no fixed namespace", check: noFixedNamespace},
		{name: "ours/Services reach the pods", check: servicesReachPods},
		{name: "ours/metrics have a certificate of the service CA", check: servingCertificate},
		{name: "ours/roles for users aggregate", check: rolesAggregate},
		{name: "ours/every field has a descriptor", check: fieldsHaveDescriptors},
		{name: "ours/the console is told what it can show", check: consoleAnnotations},
		{name: "ours/nothing is left to be written", check: noPlaceholders},
		{name: "ours/the icon is the drawing in config/manifests", check: iconIsOurs},
		{name: "ours/manifests are as people write them", check: cleanManifests},
		{name: "ours/channels and labels for OpenShift", check: openShiftLabels},
		{name: "ours/upgrades of OpenShift aren't held back", check: noMaxOpenShiftVersion},
		{name: "ours/images are told through RELATED_IMAGE", check: relatedImageVariables},
		{name: "ours/digests are claimed only with digests", check: disconnectedClaim},
	}
}

// frozenDeployment: a cluster refuses another selector under the same name, and an upgrade then sticks. Should this fail,
// the manifest is wrong and not the test.
func frozenDeployment(b *loaded) []string {
	type frozen struct {
		Name     string
		Selector map[string]string
	}
	var got []frozen
	for _, deployment := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		got = append(got, frozen{deployment.Name, deployment.Spec.Selector.MatchLabels})
	}
	want := []frozen{{
		"memcached-operator-controller-manager",
		map[string]string{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		return []string{"(-want +got):\n" + diff}
	}
	return nil
}

// noUserOrGroup: OpenShift's default constraints refuse a pod that chooses.
func noUserOrGroup(b *loaded) []string {
	chosen := regexp.MustCompile(`(?m)^\s*(?:- )?(runAsUser|runAsGroup|fsGroup|supplementalGroups):`)
	var all []string
	for name, text := range b.files {
		for _, match := range chosen.FindAllSubmatch(text, -1) {
			all = append(all, fmt.Sprintf("%s sets %s", name, match[1]))
		}
	}
	for _, pod := range b.pods() {
		if pod.SecurityContext == nil || pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot {
			all = append(all, "the pods may run as root")
		}
	}
	return all
}

// secretsAreProvided: a pod that mounts a Secret that nobody makes waits for ever. There are no webhooks, for which OLM
// would make one; the service CA makes one for each Service that asks.
func secretsAreProvided(b *loaded) []string {
	var provided []string
	for _, service := range b.ofKind("Service") {
		provided = append(provided, service.GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"])
	}
	var all []string
	for _, pod := range b.pods() {
		for _, volume := range pod.Volumes {
			secret := volume.Secret
			optional := secret != nil && secret.Optional != nil && *secret.Optional
			if secret != nil && !optional && !slices.Contains(provided, secret.SecretName) {
				all = append(all, fmt.Sprintf("volume %s needs the Secret %s, which nobody makes", volume.Name, secret.SecretName))
			}
		}
	}
	return all
}

// secretsAreEmpty: what everybody can read is no secret. And a Secret that asks Kubernetes for a token is deleted if OLM
// makes it before its account, which it does more often than not: OLM makes accounts last (OCPBUGS-35210).
func secretsAreEmpty(b *loaded) []string {
	var all []string
	for _, object := range b.ofKind("Secret") {
		secret := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, secret); err != nil {
			all = append(all, err.Error())
		}
		if len(secret.Data)+len(secret.StringData) > 0 {
			all = append(all, "Secret "+secret.Name+" has data")
		}
		if secret.Type == corev1.SecretTypeServiceAccountToken {
			all = append(all, "Secret "+secret.Name+" is to become a token of a service account that OLM makes after it")
		}
	}
	return all
}

func volumesAreMounted(b *loaded) []string {
	var all []string
	for _, pod := range b.pods() {
		var volumes, mounts []string
		for _, volume := range pod.Volumes {
			volumes = append(volumes, volume.Name)
		}
		for _, container := range pod.Containers {
			for _, mount := range container.VolumeMounts {
				mounts = append(mounts, mount.Name)
			}
		}
		slices.Sort(volumes)
		slices.Sort(mounts)
		if mounts = slices.Compact(mounts); !slices.Equal(volumes, mounts) {
			all = append(all, fmt.Sprintf("volumes %q, mounted %q", volumes, mounts))
		}
	}
	return all
}

func argumentsNameMountedFiles(b *loaded) []string {
	file := regexp.MustCompile(`^--[a-z-]+(?:file|path|dir)=(/.+)$`)
	var all []string
	for _, container := range b.containers() {
		for _, arg := range container.Args {
			match := file.FindStringSubmatch(arg)
			if match != nil && !slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
				return strings.HasPrefix(match[1], mount.MountPath)
			}) {
				all = append(all, fmt.Sprintf("container %s: nothing is mounted for %s", container.Name, arg))
			}
		}
	}
	return all
}

func containersBehave(b *loaded) []string {
	var all []string
	for _, container := range b.containers() {
		for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if request := container.Resources.Requests[resource]; request.Sign() != 1 {
				all = append(all, fmt.Sprintf("container %s requests no %s", container.Name, resource))
			}
		}
		if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited {
			all = append(all, "container "+container.Name+" has a CPU limit, which throttles its start")
		}
		if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
			all = append(all, "container "+container.Name+" can write to its root file system")
		}
		if container.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
			all = append(all, "container "+container.Name+" doesn't say why it ended")
		}
	}
	return all
}

func highlyAvailable(b *loaded) []string {
	var all []string
	for _, deployment := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas != 2 {
			all = append(all, "there are not two replicas")
		}
		affinity := deployment.Spec.Template.Spec.Affinity
		if affinity == nil || affinity.PodAntiAffinity == nil || len(affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
			all = append(all, "replicas may share a node")
		}
		if affinity != nil && affinity.PodAntiAffinity != nil && len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			all = append(all, "a cluster of one node can't run both replicas")
		}
		budgets := b.ofKind("PodDisruptionBudget")
		if !slices.ContainsFunc(budgets, func(budget *unstructured.Unstructured) bool {
			selector, _, _ := unstructured.NestedStringMap(budget.Object, "spec", "selector", "matchLabels")
			unavailable, _, _ := unstructured.NestedInt64(budget.Object, "spec", "maxUnavailable")
			return maps.Equal(selector, deployment.Spec.Selector.MatchLabels) && unavailable == 1
		}) {
			all = append(all, "no disruption budget keeps one of them")
		}
	}
	return all
}

// rightsAreNamespaced: only what has no namespace is allowed everywhere: the two reviews, and to read metrics.
func rightsAreNamespaced(b *loaded) []string {
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	var all []string
	for _, permissions := range strategy.ClusterPermissions {
		for _, rule := range permissions.Rules {
			for _, resource := range rule.Resources {
				if resource != "tokenreviews" && resource != "subjectaccessreviews" {
					all = append(all, "has rights everywhere on "+resource)
				}
			}
			for _, url := range rule.NonResourceURLs {
				if url != "/metrics" || !slices.Equal(rule.Verbs, []string{"get"}) {
					all = append(all, fmt.Sprintf("may %q the path %s of the API server", rule.Verbs, url))
				}
			}
		}
	}
	for _, pod := range b.pods() {
		if !slices.ContainsFunc(strategy.Permissions, func(permissions v1alpha1.StrategyDeploymentPermissions) bool {
			return permissions.ServiceAccountName == pod.ServiceAccountName && len(permissions.Rules) > 0
		}) {
			all = append(all, "service account "+pod.ServiceAccountName+" has no permissions")
		}
	}
	return all
}

func noWildcards(b *loaded) []string {
	var all []string
	for _, rule := range b.rules() {
		if slices.ContainsFunc(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), func(word string) bool {
			return slices.Contains([]string{"*", "escalate", "bind", "impersonate"}, word)
		}) {
			all = append(all, rule.String())
		}
	}
	return all
}

// credentialsByName: who may read any Secret, or ask for any account's token, may do what anybody there may.
func credentialsByName(b *loaded) []string {
	var all []string
	for _, rule := range b.rules() {
		credentials := slices.ContainsFunc(rule.Resources, func(resource string) bool {
			return resource == "secrets" || resource == "serviceaccounts/token"
		})
		if credentials && len(rule.ResourceNames) == 0 {
			all = append(all, rule.String())
		}
	}
	return all
}

func installModes(b *loaded) []string {
	got := map[v1alpha1.InstallModeType]bool{}
	for _, mode := range b.CSV.Spec.InstallModes {
		got[mode.Type] = mode.Supported
	}
	want := map[v1alpha1.InstallModeType]bool{
		v1alpha1.InstallModeTypeOwnNamespace: true, v1alpha1.InstallModeTypeSingleNamespace: true,
		v1alpha1.InstallModeTypeMultiNamespace: true, v1alpha1.InstallModeTypeAllNamespaces: true,
	}
	var all []string
	if diff := cmp.Diff(want, got); diff != "" {
		all = append(all, "(-want +got):\n"+diff)
	}
	const targets = "metadata.annotations['olm.targetNamespaces']" // where OLM says which namespaces to watch
	for _, container := range b.containers() {
		if container.Name == "manager" && !slices.ContainsFunc(container.Env, func(env corev1.EnvVar) bool {
			return env.Name == "WATCH_NAMESPACE" && env.ValueFrom != nil && env.ValueFrom.FieldRef != nil && env.ValueFrom.FieldRef.FieldPath == targets
		}) {
			all = append(all, "the manager isn't told which namespaces to watch")
		}
	}
	return all
}

// noFixedNamespace: an administrator installs the operator where they like, and certification under a random name.
func noFixedNamespace(b *loaded) []string {
	suggested := b.CSV.Annotations["operatorframework.io/suggested-namespace"]
	var all []string
	for _, object := range b.Objects {
		if object.GetNamespace() != "" {
			all = append(all, fmt.Sprintf("%s %s has the namespace %s", object.GetKind(), object.GetName(), object.GetNamespace()))
		}
	}
	for name, text := range b.files {
		for line := range strings.Lines(string(text)) {
			if suggested != "" && strings.Contains(line, suggested) && !strings.Contains(line, "suggested-namespace:") {
				all = append(all, name+" has a line"+line)
			}
		}
	}
	return all
}

func servicesReachPods(b *loaded) []string {
	var all []string
	for _, service := range b.ofKind("Service") {
		selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
		ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
		for _, port := range ports {
			target := intstr.Parse(fmt.Sprint(port.(map[string]any)["targetPort"]))
			if !slices.ContainsFunc(b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(deployment v1alpha1.StrategyDeploymentSpec) bool {
				return matches(selector, deployment.Spec.Template.ObjectMeta) && serves(deployment.Spec.Template.Spec, target)
			}) {
				all = append(all, fmt.Sprintf("Service %s leads to no port %s of ours", service.GetName(), target.String()))
			}
		}
	}
	return all
}

func matches(selector map[string]string, pod metav1.ObjectMeta) bool {
	for key, value := range selector {
		if pod.Labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

func serves(pod corev1.PodSpec, port intstr.IntOrString) bool {
	for _, container := range pod.Containers {
		for _, open := range container.Ports {
			if open.Name == port.StrVal && port.Type == intstr.String || open.ContainerPort == port.IntVal {
				return true
			}
		}
	}
	return false
}

func servingCertificate(b *loaded) []string {
	for _, service := range b.ofKind("Service") {
		if service.GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"] != "" {
			return nil
		}
	}
	return []string{"no Service asks the service CA for a certificate"}
}

func rolesAggregate(b *loaded) []string {
	var got []string
	for _, role := range b.ofKind("ClusterRole") {
		for label, value := range role.GetLabels() {
			if target, found := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); found && value == "true" {
				got = append(got, target)
			}
		}
	}
	slices.Sort(got)
	if want := []string{"admin", "edit", "view"}; !slices.Equal(want, got) {
		return []string{fmt.Sprintf("roles aggregate to %q, want %q", got, want)}
	}
	return nil
}

// fieldsHaveDescriptors: the console shows what has a descriptor, and a descriptor of a field that isn't there is a slip.
func fieldsHaveDescriptors(b *loaded) []string {
	var all []string
	for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		var spec, status, shown []string
		for _, descriptor := range owned.SpecDescriptors {
			spec = append(spec, descriptor.Path)
			shown = append(shown, descriptor.XDescriptors...)
		}
		for _, descriptor := range owned.StatusDescriptors {
			status = append(status, descriptor.Path)
		}
		for part, got := range map[string][]string{"spec": spec, "status": status} {
			slices.Sort(got)
			if want := slices.Sorted(maps.Keys(b.properties(owned.Kind, part))); !slices.Equal(want, got) {
				all = append(all, fmt.Sprintf("%s of %s has the fields %q, and descriptors of %q", part, owned.Kind, want, got))
			}
		}
		if len(shown) == 0 {
			all = append(all, owned.Kind+": no descriptor tells the console how to show a field")
		}
		for _, resource := range owned.Resources {
			if resource.Name != "" { // only custom resources have a name here
				all = append(all, fmt.Sprintf("%s: resource %s has the made-up name %s", owned.Kind, resource.Kind, resource.Name))
			}
		}
	}
	return all
}

func consoleAnnotations(b *loaded) []string {
	var all []string
	for _, annotation := range []string{"operatorframework.io/suggested-namespace", "operator.openshift.io/uninstall-message"} {
		if b.CSV.Annotations[annotation] == "" {
			all = append(all, "no annotation "+annotation)
		}
	}
	if len(b.examples()) < 2 {
		all = append(all, "there is one example at most")
	}
	if len(b.CSV.Spec.Keywords) < 3 {
		all = append(all, "hardly a keyword finds the operator")
	}
	// Raise it when more is true: it is what people choose by.
	if got, want := b.CSV.Annotations["capabilities"], "Seamless Upgrades"; got != want {
		all = append(all, fmt.Sprintf("the capability level is %q, want %q", got, want))
	}
	return all
}

func noPlaceholders(b *loaded) []string {
	var all []string
	for name, text := range b.files {
		for _, placeholder := range []string{"TODO", "FIXME", "your@", "your.domain", "Provider Name", "Memcached Operator description"} {
			if strings.Contains(string(text), placeholder) {
				all = append(all, fmt.Sprintf("%s has %q", name, placeholder))
			}
		}
	}
	return all
}

func iconIsOurs(b *loaded) []string {
	file := filepath.Join(root, "config", "manifests", "bases", packageName+".svg")
	drawing, err := os.ReadFile(file)
	if err != nil {
		return []string{err.Error()}
	}
	if len(b.CSV.Spec.Icon) != 1 || b.CSV.Spec.Icon[0].Data != base64.StdEncoding.EncodeToString(drawing) {
		return []string{"spec.icon of the base isn't what `base64 -w0` makes of " + file}
	}
	return nil
}

// cleanManifests: what an API server or a generator adds has no place in a file, and OLM adds a conversion itself.
func cleanManifests(b *loaded) []string {
	var all []string
	for _, object := range b.Objects {
		if _, found := object.Object["status"]; found {
			all = append(all, object.GetName()+" has a status")
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "creationTimestamp"); found {
			all = append(all, object.GetName()+" has a creationTimestamp")
		}
	}
	for _, crd := range b.V1CRDs {
		if crd.Spec.Conversion != nil && crd.Spec.Conversion.Webhook != nil {
			all = append(all, crd.Name+" has a conversion")
		}
	}
	for name, text := range b.files {
		if name != "bundle.Dockerfile" && !strings.HasPrefix(string(text), written) {
			all = append(all, name+" doesn't say that it is generated")
		}
	}
	return all
}

func openShiftLabels(b *loaded) []string {
	var all []string
	for key, want := range map[string]string{
		"operators.operatorframework.io.bundle.channels.v1":        "candidate-v1,stable-v1",
		"operators.operatorframework.io.bundle.channel.default.v1": "stable-v1",
		"com.redhat.openshift.versions":                            "v4.18",
		"com.redhat.delivery.operator.bundle":                      "true",
		"com.redhat.delivery.backport":                             "false",
	} {
		if got := b.labels[key]; got != want {
			all = append(all, fmt.Sprintf("label %s of bundle.Dockerfile is %q, want %q", key, got, want))
		}
	}
	return all
}

// noMaxOpenShiftVersion: a stale one holds up the upgrade of the whole cluster.
func noMaxOpenShiftVersion(b *loaded) []string {
	var all []string
	for name, text := range b.files {
		if strings.Contains(string(text), "olm.maxOpenShiftVersion") {
			all = append(all, name+" has an olm.maxOpenShiftVersion")
		}
	}
	return all
}

// relatedImageVariables: operands' images are named so that mirroring tools and users find them, and by full names.
func relatedImageVariables(b *loaded) []string {
	var all []string
	for variable, value := range b.environment() {
		if imageLike.MatchString(value) && !strings.Contains(variable, "/"+relatedImage) {
			all = append(all, fmt.Sprintf("%s is an image (%s): call it RELATED_IMAGE_…", variable, value))
		}
	}
	for where, image := range b.images() {
		if !imageLike.MatchString(image) {
			all = append(all, fmt.Sprintf("%s is %s, which names no registry", where, image))
		}
	}
	return all
}

// disconnectedClaim: images that are named by tags can't be mirrored.
func disconnectedClaim(b *loaded) []string {
	claim := b.CSV.Annotations["features.operators.openshift.io/disconnected"] == "true"
	if tags := slices.DeleteFunc(b.related(), pinned.MatchString); claim && len(tags) > 0 {
		return []string{fmt.Sprintf("claims to work disconnected, and has tags: %q", tags)}
	}
	return nil
}
