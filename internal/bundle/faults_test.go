// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// fault is a mistake in a pinned bundle, and all the rules that it breaks.
type fault struct {
	name   string
	change func(*testing.T, Files)
	breaks []string
}

// faults begin with those of the Memcached sample that operator-sdk comes with, by their numbers in our notes on it.
func faults() []fault {
	const (
		csvValidator     = "operator-framework/ClusterServiceVersionValidator"
		hubValidator     = "operator-framework/OperatorHubV2Validator"
		scorecardBundle  = "scorecard/olm-bundle-validation"
		preflightBundle  = "preflight/ValidateOperatorBundle"
		requiredFields   = "community/check_required_fields"
		related          = "preflight/AllImageRefsInRelatedImages"
		pinnedReferences = "conforma/unpinned_references"
		format           = "operator-registry/ValidateBundleFormat"
	)
	return []fault{
		{"sample 1: an argument names a file that isn't there", inManager(func(manager *corev1.Container) {
			manager.Args = append(manager.Args, "--metrics-cert-path=/tmp/k8s-metrics-server/metrics-certs")
		}), []string{"ours/files named in arguments are mounted"}},
		{"sample 2: the mount is gone and the volume is left", inPod(func(pod *corev1.PodSpec) {
			pod.Containers[1].VolumeMounts = nil
		}), []string{"ours/files named in arguments are mounted", "ours/volumes and mounts belong together"}},
		{
			"sample 2: a Secret is mounted that nobody makes", inText(csvFile, "secretName: memcached-operator-metrics-tls", "secretName: metrics-server-cert"),
			[]string{"ours/secrets that are mounted are provided"},
		},
		{
			"sample 3: a ServiceMonitor has the namespace in its server name", withManifest("monitor.yaml",
				"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: monitor}\nspec: {serverName: metrics.memcached-operator-system}\n"),
			[]string{"ours/no fixed namespace", "ours/manifests are as people write them"},
		},
		{
			"sample 4: the metrics Service has no certificate", inText(serviceFile, "service.beta.openshift.io/serving-cert-secret-name", "example.com/nothing"),
			[]string{"ours/metrics have a certificate of the service CA", "ours/secrets that are mounted are provided"},
		},
		{"sample 5: the icon is empty", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.Icon = []v1alpha1.Icon{{}}
		}), []string{hubValidator, preflightBundle, requiredFields, "ours/the icon is the drawing in config/manifests"}},
		{"sample 6: placeholders are left", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.Description = "Memcached Operator description. TODO."
			csv.Spec.Provider = v1alpha1.AppLink{Name: "Provider Name", URL: "https://your.domain"}
		}), []string{"ours/nothing is left to be written"}},
		{
			"sample 7: annotations for people are missing", withoutAnnotations("categories", "containerImage", "repository", "support", "description", "createdAt"),
			[]string{requiredFields, related, pinnedReferences, "ours/images are told through RELATED_IMAGE"},
		},
		{
			"sample 8: features are neither claimed nor denied", withoutAnnotations("features.operators.openshift.io/fips-compliant"),
			[]string{"preflight/RequiredAnnotations", "conforma/feature_annotations_format"},
		},
		{
			"sample 8: no subscription is named", withoutAnnotations("operators.openshift.io/valid-subscription"),
			[]string{"conforma/subscriptions_annotation_format"},
		},
		{
			"sample 9: the console isn't told the namespace", withoutAnnotations("operatorframework.io/suggested-namespace"),
			[]string{"ours/the console is told what it can show"},
		},
		{
			"sample 9: the console isn't told what remains", withoutAnnotations("operator.openshift.io/uninstall-message"),
			[]string{"ours/the console is told what it can show"},
		},
		{"sample 10: no labels say which platforms are supported", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Labels = nil
		}), []string{"operator-framework/MultipleArchitecturesValidator (static part)"}},
		{"sample 10: the pods have no node affinity", inPod(func(pod *corev1.PodSpec) {
			pod.Affinity.NodeAffinity = nil
		}), []string{"operator-framework/MultipleArchitecturesValidator (static part)"}},
		{"sample 11: no oldest Kubernetes is named", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.MinKubeVersion = ""
		}), []string{csvValidator, hubValidator, scorecardBundle, preflightBundle, "community/check_api_version_constraints"}},
		{
			"sample 11: no oldest OpenShift is named", inBoth("com.redhat.openshift.versions", "v4.18", "v4.15"),
			[]string{"community/check_api_version_constraints", "ours/channels and labels for OpenShift"},
		},
		{"sample 12: the operand's image has a tag, no registry, and a variable of another name", inManager(func(manager *corev1.Container) {
			*memcachedImage(manager) = corev1.EnvVar{Name: "MEMCACHED_IMAGE", Value: "docker.io/library/memcached:1.4.36-alpine"}
		}), []string{"ours/images are told through RELATED_IMAGE", "preflight/FollowsRestrictedNetworkEnablementGuidelines"}},
		{"sample 12: a short name", inManager(func(manager *corev1.Container) {
			memcachedImage(manager).Value = "memcached:1.4.36-alpine"
		}), []string{related, pinnedReferences, "ours/images are told through RELATED_IMAGE"}},
		{"sample 12: no related images", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.RelatedImages = nil
		}), []string{related, "preflight/FollowsRestrictedNetworkEnablementGuidelines"}},
		{
			"sample 13: less is claimed than is true", inText(csvFile, "capabilities: Seamless Upgrades", "capabilities: Basic Install"),
			[]string{"ours/the console is told what it can show"},
		},
		{"sample 14: fields have no descriptors", inOwned(func(owned *v1alpha1.CRDDescription) {
			owned.SpecDescriptors = owned.SpecDescriptors[1:]
		}), []string{"scorecard/olm-spec-descriptors", "ours/every field has a descriptor"}},
		{"sample 14: status has no descriptors", inOwned(func(owned *v1alpha1.CRDDescription) {
			owned.StatusDescriptors = nil
		}), []string{"scorecard/olm-status-descriptors", "ours/every field has a descriptor"}},
		{"sample 14: a resource has a made-up name", inOwned(func(owned *v1alpha1.CRDDescription) {
			owned.Resources[0].Name = "memcached-deployment"
		}), []string{"ours/every field has a descriptor"}},
		{"sample 15: one keyword", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.Keywords = csv.Spec.Keywords[:1]
		}), []string{"ours/the console is told what it can show"}},
		{"sample 16: only AllNamespaces is supported", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.InstallModes = csv.Spec.InstallModes[3:]
		}), []string{"ours/all four install modes"}},
		{"sample 17: a skipRange without replaces", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Annotations["olm.skipRange"] = "<0.1.0"
		}), []string{"certified/check_pruned_graph"}},
		{"sample 18: one replica", inDeployment(func(deployment *v1alpha1.StrategyDeploymentSpec) {
			deployment.Spec.Replicas = new(int32(1))
		}), []string{"ours/two replicas that stay apart and survive a drain"}},
		{
			"sample 18: no disruption budget", func(_ *testing.T, files Files) { delete(files, budgetFile) },
			[]string{"ours/two replicas that stay apart and survive a drain"},
		},
		{"sample 18: replicas may share a node", inPod(func(pod *corev1.PodSpec) {
			pod.Affinity.PodAntiAffinity = nil
		}), []string{"ours/two replicas that stay apart and survive a drain"}},
		{"sample 18: a CPU limit", inManager(func(manager *corev1.Container) {
			manager.Resources.Limits[corev1.ResourceCPU] = manager.Resources.Requests[corev1.ResourceCPU]
		}), []string{"ours/containers request, don't write, and say why they end"}},
		{"sample 18: a writable root file system", inManager(func(manager *corev1.Container) {
			manager.SecurityContext.ReadOnlyRootFilesystem = nil
		}), []string{"ours/containers request, don't write, and say why they end"}},
		{
			"sample 22: the channel is alpha", inBoth("operators.operatorframework.io.bundle.channels.v1", "candidate-v1,stable-v1", "alpha"),
			[]string{format, scorecardBundle, "operator-framework/GoodPracticesValidator", "ours/channels and labels for OpenShift"},
		},
		{
			"sample 23: the CRD has a status", inText(crdFile, "\nspec:\n", "\nstatus: {}\nspec:\n"),
			[]string{"ours/manifests are as people write them"},
		},
		{
			"sample 24: a Service for webhooks", withManifest("webhook.yaml", written+
				"apiVersion: v1\nkind: Service\nmetadata: {name: webhook-service}\n"+
				"spec: {ports: [{port: 443, targetPort: 9443}], selector: {control-plane: controller-manager}}\n"),
			[]string{"ours/Services reach the pods"},
		},
		{
			"sample 24: the CRD has a conversion", inText(crdFile, "\nspec:\n",
				"\nspec:\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: \"https://example.com\"}}}\n"),
			[]string{"ours/manifests are as people write them"},
		},
		{
			"sample 25: the image has no labels for OpenShift", inText("bundle.Dockerfile", "LABEL com.redhat.delivery.operator.bundle=true\n", ""),
			[]string{format, scorecardBundle, "ours/channels and labels for OpenShift"},
		},
		{"sample 26: one example", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Annotations["alm-examples"] = `[{"apiVersion": "cache.example.com/v1", "kind": "Memcached", "metadata": {"name": "a"}, "spec": {"size": 1}}]`
		}), []string{"ours/the console is told what it can show"}},

		{"an example has no spec", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Annotations["alm-examples"] = strings.Replace(csv.Annotations["alm-examples"], `"spec"`, `"specification"`, 1)
		}), []string{"scorecard/basic-check-spec"}},
		{
			"an example has a field that isn't there", inText(csvFile, `"size": 3`, `"replicas": 3`),
			[]string{"scorecard/olm-crds-have-validation", "scorecard/olm-spec-descriptors"},
		},
		{
			"an example is of a kind that isn't ours", inText(csvFile, `"kind": "Memcached"`, `"kind": "Redis"`),
			[]string{csvValidator, scorecardBundle, preflightBundle, "scorecard/olm-crds-have-validation"},
		},
		{
			"the API has no resources", inOwned(func(owned *v1alpha1.CRDDescription) { owned.Resources = nil }),
			[]string{"scorecard/olm-crds-have-resources"},
		},
		{
			"a test of the scorecard is missing", inText("bundle/tests/scorecard/config.yaml", "- olm-spec-descriptors\n", "- olm-status-descriptors\n"),
			[]string{"scorecard/configuration"},
		},
		{
			"the CRD's plural isn't in its name", inText(crdFile, "plural: memcacheds", "plural: caches"),
			[]string{"operator-framework/CustomResourceDefinitionValidator", scorecardBundle, preflightBundle},
		},
		{"the API isn't described", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.CustomResourceDefinitions.Owned[0].Version = "v2"
		}), []string{csvValidator, "operator-framework/BundleValidator", scorecardBundle, preflightBundle}},
		{
			"a category that there isn't", inText(csvFile, "categories: Database", "categories: Caching"),
			[]string{"operator-framework/StandardCategoriesValidator", preflightBundle},
		},
		{
			"a capability level that there isn't", inText(csvFile, "capabilities: Seamless Upgrades", "capabilities: Everything"),
			[]string{"operator-framework/StandardCapabilitiesValidator", preflightBundle, "ours/the console is told what it can show"},
		},
		{
			"a disruption budget that blocks every drain", inText(budgetFile, "maxUnavailable: 1", "maxUnavailable: 0"),
			[]string{"operator-framework/ObjectValidator", "ours/two replicas that stay apart and survive a drain"},
		},
		{
			"an OperatorGroup in the bundle", withManifest("group.yaml", written+
				"apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: group, annotations: {OLM.targetnamespaces: a}}\n"),
			[]string{"operator-registry/ValidateBundleContent"},
		},
		{
			"a NetworkPolicy in the bundle", withManifest("policy.yaml", written+
				"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: policy}\nspec: {podSelector: {}}\n"),
			[]string{"common/check_network_policy_presence"},
		},
		{
			"an API that Kubernetes removed", inText(budgetFile, "policy/v1", "policy/v1beta1"),
			[]string{"operator-framework/AlphaDeprecatedAPIsValidator", hubValidator, preflightBundle},
		},
		{
			"an API that Kubernetes 1.22 removed", inText(viewerFile, "rbac.authorization.k8s.io/v1\n", "rbac.authorization.k8s.io/v1beta1\n"),
			[]string{"operator-framework/CommunityOperatorValidator", "operator-framework/AlphaDeprecatedAPIsValidator", hubValidator, preflightBundle},
		},
		{
			"a field that OLM doesn't know", inText(csvFile, "\n  minKubeVersion:", "\n  minOpenShiftVersion: 4.18.0\n  minKubeVersion:"),
			[]string{"operator-lifecycle-manager/ClusterServiceVersions are accepted"},
		},
		{
			"the bundle of another name", inText(csvFile, "name: memcached-operator.v0.1.0", "name: memcached.v0.1.0"),
			[]string{"common/check_operator_name"},
		},
		{
			"a version that isn't semantic", inText(csvFile, "\n  version: 0.1.0\n", "\n  version: \"0.1\"\n"),
			[]string{"conforma/csv_semver_format"},
		},
		{"an annotation of the marketplace", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Annotations["marketplace.openshift.io/remote-workflow"] = "https://marketplace.redhat.com"
		}), []string{"certified/check_marketplace_annotation"}},
		{"an annotation names an image by its tag", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Annotations["operators.openshift.io/must-gather-image"] = "quay.io/example-inc/must-gather:v1"
		}), []string{pinnedReferences}},
		{"related images have tags", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.RelatedImages = append(csv.Spec.RelatedImages, v1alpha1.RelatedImage{Name: "more", Image: "quay.io/example-inc/more:v1"})
		}), []string{"conforma/unpinned_related_images", "preflight/FollowsRestrictedNetworkEnablementGuidelines", "ours/digests are claimed only with digests"}},
		{"a rule about security context constraints", inRules(rbacv1.PolicyRule{
			APIGroups: []string{"security.openshift.io"}, Resources: []string{"securitycontextconstraints"}, ResourceNames: []string{"anyuid"}, Verbs: []string{"use"},
		}), []string{"preflight/SecurityContextConstraintsInCSV"}},
		{
			"a wildcard", inRules(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}}),
			[]string{"ours/no wildcard rights"},
		},
		{
			"rights to all Secrets", inRules(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}),
			[]string{"ours/rights to Secrets and tokens are to one by name"},
		},
		{
			"more than metrics may be read", inText(csvFile, "- /metrics\n", "- /debug/pprof\n"),
			[]string{"ours/rights hold where the OperatorGroup says"},
		},
		{
			"a Secret becomes the token of an account that isn't there yet", inText(tokenFile, "type: Opaque", "type: kubernetes.io/service-account-token"),
			[]string{"ours/Secrets come empty"},
		},
		{
			"a Secret isn't secret", inText(tokenFile, "type: Opaque", "type: Opaque\nstringData: {token: abc}"),
			[]string{"ours/Secrets come empty"},
		},
		{"the operand's rights hold everywhere", inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
			strategy := &csv.Spec.InstallStrategy.StrategySpec
			strategy.ClusterPermissions, strategy.Permissions = append(strategy.ClusterPermissions, strategy.Permissions...), nil
		}), []string{"ours/rights hold where the OperatorGroup says"}},
		{"the Deployment's selector changed", inDeployment(func(deployment *v1alpha1.StrategyDeploymentSpec) {
			deployment.Spec.Selector.MatchLabels["version"] = "v1"
			deployment.Spec.Template.Labels["version"] = "v1"
		}), []string{"ours/name and selector of the Deployment are frozen", "ours/two replicas that stay apart and survive a drain"}},
		{
			"the Deployment's name changed", inDeployment(func(deployment *v1alpha1.StrategyDeploymentSpec) { deployment.Name += "-2" }),
			[]string{"ours/name and selector of the Deployment are frozen"},
		},
		{
			"a user is chosen", inPod(func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsUser = new(int64(65532)) }),
			[]string{"ours/no user or group is chosen"},
		},
		{
			"a group is chosen", inPod(func(pod *corev1.PodSpec) { pod.SecurityContext.FSGroup = new(int64(65532)) }),
			[]string{"ours/no user or group is chosen"},
		},
		{
			"a container requests nothing", inPod(func(pod *corev1.PodSpec) { pod.Containers[1].Resources = corev1.ResourceRequirements{} }),
			[]string{"operator-framework/GoodPracticesValidator", "ours/containers request, don't write, and say why they end"},
		},
		{"a role for users doesn't aggregate", inText(viewerFile, "aggregate-to-view", "aggregate-to-nobody"), []string{"ours/roles for users aggregate"}},
		{
			"an object has a namespace", inText(serviceFile, "metadata:\n", "metadata:\n  namespace: elsewhere\n"),
			[]string{"ours/no fixed namespace"},
		},
		{"the upgrade of OpenShift is held back", func(_ *testing.T, files Files) {
			files["bundle/metadata/properties.yaml"] = []byte(written + "properties:\n- type: olm.maxOpenShiftVersion\n  value: \"4.20\"\n")
		}, []string{"ours/upgrades of OpenShift aren't held back"}},
	}
}

// inText changes a file, which must have the text.
func inText(file, before, after string) func(*testing.T, Files) {
	return func(t *testing.T, files Files) {
		t.Helper()
		if !strings.Contains(string(files[file]), before) {
			t.Fatalf("%s has no %q", file, before)
		}
		files[file] = []byte(strings.Replace(string(files[file]), before, after, 1))
	}
}

// inBoth changes an annotation of the bundle, and the label of its image that says the same.
func inBoth(key, before, after string) func(*testing.T, Files) {
	return func(t *testing.T, files Files) {
		t.Helper()
		inText("bundle/metadata/annotations.yaml", key+": "+before, key+": "+after)(t, files)
		inText("bundle.Dockerfile", key+"="+before, key+"="+after)(t, files)
	}
}

func withManifest(name, text string) func(*testing.T, Files) {
	return func(_ *testing.T, files Files) { files["bundle/manifests/"+name] = []byte(text) }
}

func inCSV(change func(*v1alpha1.ClusterServiceVersion)) func(*testing.T, Files) {
	return func(t *testing.T, files Files) {
		t.Helper()
		csv := &v1alpha1.ClusterServiceVersion{}
		if err := yaml.UnmarshalStrict(files[csvFile], csv); err != nil {
			t.Fatal(err)
		}
		change(csv)
		content, err := asWritten(csv)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		files[csvFile] = fmt.Append([]byte(written), string(text))
	}
}

func withoutAnnotations(keys ...string) func(*testing.T, Files) {
	return inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
		for _, key := range keys {
			delete(csv.Annotations, key)
		}
	})
}

func inDeployment(change func(*v1alpha1.StrategyDeploymentSpec)) func(*testing.T, Files) {
	return inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
		change(&csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0])
	})
}

func inPod(change func(*corev1.PodSpec)) func(*testing.T, Files) {
	return inDeployment(func(deployment *v1alpha1.StrategyDeploymentSpec) { change(&deployment.Spec.Template.Spec) })
}

func inManager(change func(*corev1.Container)) func(*testing.T, Files) {
	return inPod(func(pod *corev1.PodSpec) { change(&pod.Containers[0]) })
}

// memcachedImage is the variable that tells the manager which memcached to run.
func memcachedImage(manager *corev1.Container) *corev1.EnvVar {
	return &manager.Env[slices.IndexFunc(manager.Env, func(env corev1.EnvVar) bool { return env.Name == "RELATED_IMAGE_MEMCACHED" })]
}

func inOwned(change func(*v1alpha1.CRDDescription)) func(*testing.T, Files) {
	return inCSV(func(csv *v1alpha1.ClusterServiceVersion) { change(&csv.Spec.CustomResourceDefinitions.Owned[0]) })
}

// inRules adds a rule to what is granted in the namespaces of the OperatorGroup.
func inRules(rule rbacv1.PolicyRule) func(*testing.T, Files) {
	return inCSV(func(csv *v1alpha1.ClusterServiceVersion) {
		permissions := &csv.Spec.InstallStrategy.StrategySpec.Permissions[0]
		permissions.Rules = append(permissions.Rules, rule)
	})
}
