// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package monitoring

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// What Prometheus is told, field by field, in two namespaces; and who goes along when the operator's Deployment goes.
func TestServiceMonitorIsOfTheNamespaceThatTheOperatorIsIn(t *testing.T) {
	installCRD(t)
	for range 2 {
		namespace := install(t)
		startManager(t, namespace)

		deployment := get(t, namespace, Deployment, &appsv1.Deployment{})
		want := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "monitoring.coreos.com/v1",
			"kind":       "ServiceMonitor",
			"metadata": map[string]any{
				"name":      "memcached-operator-controller-manager-metrics",
				"namespace": namespace,
				"labels":    map[string]any{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"},
				"ownerReferences": []any{map[string]any{
					"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.Name, "uid": string(deployment.UID),
					"controller": true, "blockOwnerDeletion": false,
				}},
			},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{
					"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager",
				}},
				"endpoints": []any{map[string]any{
					"port":   "https",
					"scheme": "https",
					"tlsConfig": map[string]any{
						"serverName": "memcached-operator-controller-manager-metrics-service." + namespace + ".svc",
						"ca":         map[string]any{"configMap": map[string]any{"name": "memcached-operator-metrics-ca", "key": "service-ca.crt"}},
					},
					"authorization": map[string]any{
						"type":        "Bearer",
						"credentials": map[string]any{"name": "memcached-operator-metrics-token", "key": "token"},
					},
				}},
			},
		}}
		got := monitored(t, namespace)
		if managers := got.GetManagedFields(); len(managers) != 1 || managers[0].Manager != "memcached-operator" {
			t.Errorf("it was written by %v", managers)
		}
		for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
			unstructured.RemoveNestedField(got.Object, "metadata", field)
		}
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// The token that the ServiceMonitor names opens metrics, of whatever asks the API server who may read them, and no more.
func TestTokenReadsMetricsAndNothingElse(t *testing.T) {
	installCRD(t)
	namespace := install(t)
	start(t, namespace)
	token := scraping(t, namespace)

	prometheus, err := kubernetes.NewForConfig(withToken(token))
	if err != nil {
		t.Fatal(err)
	}
	self, err := prometheus.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + namespace + ":memcached-operator-metrics-scraper"; self.Status.UserInfo.Username != want {
		t.Errorf("it is the token of %s, want %s", self.Status.UserInfo.Username, want)
	}
	if _, err := prometheus.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context()); err != nil {
		t.Errorf("reading metrics: %v", err)
	}
	if _, err := prometheus.RESTClient().Get().AbsPath("/logs").DoRaw(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("reading something else: %v", err)
	}
	if _, err := prometheus.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: %v", err)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	installCRD(t)
	namespace := install(t)
	start(t, namespace)
	first := scraping(t, namespace)

	secret := get(t, namespace, Token, &corev1.Secret{})
	next, err := time.Parse(time.RFC3339, secret.Annotations[renewAnnotation])
	if half := time.Now().Add(lifetime / 2); err != nil || next.Before(half.Add(-patience)) || next.After(half) {
		t.Errorf("the next is due at %v, %v; it should be about %v", next, err, half)
	}

	for name, change := range map[string]func(*corev1.Secret){
		"when its time is half over": func(secret *corev1.Secret) {
			secret.Annotations[renewAnnotation] = time.Now().Add(-time.Second).Format(time.RFC3339)
		},
		"when OLM installs the Secret anew":       func(secret *corev1.Secret) { secret.Annotations, secret.Data = nil, nil },
		"when nobody can tell how old it is":      func(secret *corev1.Secret) { secret.Annotations[renewAnnotation] = "soon" },
		"when the token is gone and nothing else": func(secret *corev1.Secret) { secret.Data = nil },
	} {
		t.Run(name, func(t *testing.T) {
			before := scraping(t, namespace)
			secret := get(t, namespace, Token, &corev1.Secret{})
			change(secret)
			if err := testClient.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			eventually(t, func(g gomega.Gomega) {
				now := get(t, namespace, Token, &corev1.Secret{})
				g.Expect(now.ResourceVersion).NotTo(gomega.Equal(secret.ResourceVersion))
				g.Expect(now.Data[TokenKey]).NotTo(gomega.BeEmpty())
				g.Expect(string(now.Data[TokenKey])).NotTo(gomega.Equal(before))
			})
		})
	}
	if scraping(t, namespace) == first {
		t.Error("it is still the first token")
	}
}

func TestUnchangedWorldIsNotWrittenTo(t *testing.T) {
	installCRD(t)
	namespace := install(t)
	first := start(t, namespace)
	scraping(t, namespace)
	monitored(t, namespace)
	before := first.seen(&first.writes)
	if len(before) != 3 { // the request for a token, the Secret, the ServiceMonitor
		t.Errorf("it took the writes %q", before)
	}
	stays(t, func(g gomega.Gomega) { g.Expect(first.seen(&first.writes)).To(gomega.Equal(before)) })

	first.stop()
	second := start(t, namespace)
	stays(t, func(g gomega.Gomega) { g.Expect(second.seen(&second.writes)).To(gomega.BeEmpty()) })
}

func TestEditsAreHealed(t *testing.T) {
	installCRD(t)
	namespace := install(t)
	start(t, namespace)
	want := monitored(t, namespace)

	for name, change := range map[string]func(*unstructured.Unstructured){
		"what Prometheus checks": func(monitor *unstructured.Unstructured) {
			endpoints := []any{map[string]any{"port": "https", "scheme": "https", "tlsConfig": map[string]any{"insecureSkipVerify": true}}}
			set(t, monitor, endpoints, "spec", "endpoints")
		},
		"a label that the Service doesn't have": func(monitor *unstructured.Unstructured) {
			set(t, monitor, "else", "spec", "selector", "matchLabels", "somebody")
		},
		"a field of somebody else's": func(monitor *unstructured.Unstructured) { set(t, monitor, "app", "spec", "jobLabel") },
		"its labels":                 func(monitor *unstructured.Unstructured) { monitor.SetLabels(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			edited := monitored(t, namespace)
			change(edited)
			if err := testClient.Update(t.Context(), edited); err != nil {
				t.Fatal(err)
			}
			eventually(t, func(g gomega.Gomega) {
				healed := monitored(t, namespace)
				g.Expect(healed.Object["spec"]).To(gomega.Equal(want.Object["spec"]))
				g.Expect(healed.GetLabels()).To(gomega.Equal(want.GetLabels()))
				g.Expect(healed.GetUID()).To(gomega.Equal(want.GetUID()))
			})
		})
	}

	t.Run("a label by which some Prometheus selects stays", func(t *testing.T) {
		edited := monitored(t, namespace)
		set(t, edited, "mine", "metadata", "labels", "release")
		if err := testClient.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		stays(t, func(g gomega.Gomega) {
			g.Expect(monitored(t, namespace).GetLabels()).To(gomega.HaveKeyWithValue("release", "mine"))
		})
	})
	t.Run("deleted", func(t *testing.T) {
		if err := testClient.Delete(t.Context(), monitored(t, namespace)); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(g gomega.Gomega) {
			g.Expect(monitored(t, namespace).GetUID()).NotTo(gomega.Equal(want.GetUID()))
		})
	})
}

// Versions of the Prometheus operator differ in what their schema fills in, and in what it doesn't know yet.
func TestSchemaThatChangesTheSpecIsNotTalkedAbout(t *testing.T) {
	for name, change := range map[string]func(spec *apiextensionsv1.JSONSchemaProps){
		"by a default": func(spec *apiextensionsv1.JSONSchemaProps) {
			spec.Properties["jobLabel"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"app"`)}}
		},
		"as it lacks a field": func(spec *apiextensionsv1.JSONSchemaProps) {
			delete(spec.Properties["endpoints"].Items.Schema.Properties, "authorization")
		},
	} {
		t.Run(name, func(t *testing.T) {
			uninstallCRD(t)
			options := crds(t)
			if err := envtest.ReadCRDFiles(&options); err != nil {
				t.Fatal(err)
			}
			spec := options.CRDs[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			change(&spec)
			options.Paths = nil
			if _, err := envtest.InstallCRDs(testConfig, options); err != nil {
				t.Fatal(err)
			}

			namespace := install(t)
			k := start(t, namespace)
			eventually(t, func(g gomega.Gomega) { // it looked again, and wrote
				g.Expect(k.seen(&k.writes)).To(gomega.ContainElement(gomega.HavePrefix("PATCH /apis/" + kind.Group)))
			})
			stays(t, func(g gomega.Gomega) {
				g.Expect(k.seen(&k.lines)).To(gomega.ConsistOf(
					gomega.ContainSubstring("Renewed the token"), gomega.ContainSubstring("Wrote ServiceMonitor"),
				))
			})
		})
	}
}

func TestStrangerIsLeftAloneAndToldOfOnce(t *testing.T) {
	installCRD(t)
	namespace := install(t)
	stranger := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector": map[string]any{}, "endpoints": []any{map[string]any{"port": "web"}},
	}}}
	stranger.SetGroupVersionKind(kind)
	stranger.SetNamespace(namespace)
	stranger.SetName(ServiceMonitor)
	if err := testClient.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	k := start(t, namespace)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(k.seen(&k.errors)).To(gomega.ConsistOf(gomega.ContainSubstring("delete it, and it is made anew")))
	})
	stays(t, func(g gomega.Gomega) {
		g.Expect(k.seen(&k.errors)).To(gomega.HaveLen(1))
		g.Expect(monitored(t, namespace).GetResourceVersion()).To(gomega.Equal(stranger.GetResourceVersion()))
	})

	if err := testClient.Delete(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) {
		g.Expect(monitored(t, namespace).GetOwnerReferences()).To(gomega.HaveLen(1))
	})
}

func TestKindThatComesAndGoes(t *testing.T) {
	uninstallCRD(t)
	namespace := install(t)
	k := start(t, namespace)
	stays(t, func(g gomega.Gomega) {
		g.Expect(k.seen(&k.writes)).To(gomega.BeEmpty())
		g.Expect(k.seen(&k.errors)).To(gomega.BeEmpty())
	})

	installCRD(t)
	monitored(t, namespace)

	uninstallCRD(t)
	before := k.seen(&k.errors) // that none can be made any more, if it looked while the kind went
	stays(t, func(g gomega.Gomega) { g.Expect(k.seen(&k.errors)).To(gomega.Equal(before)) })
}

func TestMissingRightsAreToldOfOnceAndEndNothing(t *testing.T) {
	installCRD(t)
	namespace := install(t)
	binding := get(t, namespace, "memcached-operator-monitoring-rolebinding", &rbacv1.RoleBinding{})
	if err := testClient.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	k := start(t, namespace)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(k.seen(&k.errors)).To(gomega.ConsistOf(gomega.SatisfyAll(
			gomega.ContainSubstring("forbidden"), gomega.ContainSubstring(Token), gomega.ContainSubstring(Deployment),
		)))
	})
	stays(t, func(g gomega.Gomega) { g.Expect(k.seen(&k.errors)).To(gomega.HaveLen(1)) })

	binding.ResourceVersion = ""
	if err := testClient.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	monitored(t, namespace)
	scraping(t, namespace)
}

func TestNoNamespaceMeansNoServiceMonitor(t *testing.T) {
	if err := SetupWithManager(nil, "memcached-operator", ""); err != nil {
		t.Errorf("asks something of the manager: %v", err)
	}
}

func TestOnlyTheLeaderKeepsThem(t *testing.T) {
	if !(&keeper{}).NeedLeaderElection() {
		t.Error("every replica would write")
	}
}

// What is applied by hand on plain Kubernetes has no field that the kind doesn't know.
func TestManifestForPlainKubernetesIsAccepted(t *testing.T) {
	installCRD(t)
	var checked int
	for _, object := range render(t, "prometheus", "default") {
		if object.GroupVersionKind() == kind {
			checked++
			if err := testClient.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Error(err)
			}
		}
	}
	if checked != 1 {
		t.Errorf("it holds %d ServiceMonitors", checked)
	}
}

// startManager runs one as main does, with the rights that the real one has. It stops with the test.
func startManager(t *testing.T, namespace string) {
	t.Helper()
	mgr, err := ctrl.NewManager(as(t, namespace, Deployment), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err == nil {
		err = SetupWithManager(mgr, "memcached-operator", namespace)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// monitored waits for the ServiceMonitor.
func monitored(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(kind)
	eventually(t, func(g gomega.Gomega) {
		key := client.ObjectKey{Namespace: namespace, Name: ServiceMonitor}
		g.Expect(testClient.Get(t.Context(), key, monitor)).To(gomega.Succeed())
	})
	return monitor
}

// scraping waits for the token.
func scraping(t *testing.T, namespace string) string {
	t.Helper()
	var token string
	eventually(t, func(g gomega.Gomega) {
		token = string(get(t, namespace, Token, &corev1.Secret{}).Data[TokenKey])
		g.Expect(token).NotTo(gomega.BeEmpty())
	})
	return token
}

func get[O client.Object](t *testing.T, namespace, name string, object O) O {
	t.Helper()
	if err := testClient.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func set(t *testing.T, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
