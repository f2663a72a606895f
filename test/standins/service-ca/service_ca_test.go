// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-inc/memcached-operator/test/standins/internal/controlplane"
)

// The stand-in has the rights of its manifest, and no others. There is no garbage collector here, and no pod.
func TestServiceCA(t *testing.T) {
	cluster := controlplane.Start(t)
	applyManifest(t, cluster)
	stop := start(t, cluster)
	test := func(name string, body func(*testing.T, *controlplane.Cluster)) {
		t.Run(name, func(t *testing.T) { body(t, cluster) })
	}
	test("a Service's certificate is good for its names", certificateIsGood)
	test("a headless Service's certificate is good for its pods", headlessCertificateIsGood)
	test("a Secret that is lost or damaged is mended", secretIsMended)
	test("a ConfigMap gets the authority and nothing else", configMapIsFilled)
	test("what isn't annotated is left alone", othersAreLeftAlone)
	test("a Secret of somebody else's is left alone", strangersSecretIsLeftAlone)
	test("its pod may run where pods are restricted", podIsRestricted)

	t.Run("the authority outlives a restart", func(t *testing.T) {
		service := createService(t, cluster, "before")
		before, _ := filled(t, cluster, service)
		bundle := injected(t, cluster)
		stop()
		start(t, cluster)
		if diff := cmp.Diff(bundle, injected(t, cluster)); diff != "" {
			t.Errorf("the authority is another one (-before +after):\n%s", diff)
		}
		filled(t, cluster, createService(t, cluster, "after"))
		if after, _ := filled(t, cluster, service); after.ResourceVersion != before.ResourceVersion {
			t.Error("the Secret of a Service that hasn't changed was written")
		}
	})
}

func certificateIsGood(t *testing.T, cluster *controlplane.Cluster) {
	service := createService(t, cluster, "good")
	secret, certificate := filled(t, cluster, service)
	isFor(t, certificate, "good.default.svc", "good.default.svc.cluster.local")
	if secret.Type != corev1.SecretTypeTLS {
		t.Errorf("the Secret's type is %s", secret.Type)
	}
	if keys := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(keys, []string{"tls.crt", "tls.key"}) {
		t.Errorf("the Secret has %v", keys)
	}
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "good", UID: service.UID}}
	if diff := cmp.Diff(owner, secret.OwnerReferences); diff != "" {
		t.Errorf("owners of the Secret (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"service.beta.openshift.io/originating-service-name": "good",
		"service.beta.openshift.io/originating-service-uid":  string(service.UID),
		"service.beta.openshift.io/expiry":                   certificate.NotAfter.Format(time.RFC3339),
	}, secret.Annotations); diff != "" {
		t.Errorf("annotations of the Secret (-want +got):\n%s", diff)
	}
	eventually(t, func(g gomega.Gomega) {
		get(t, g, cluster, service)
		g.Expect(service.Annotations).To(gomega.Equal(map[string]string{
			"service.beta.openshift.io/serving-cert-secret-name": "good-tls",
			"service.beta.openshift.io/serving-cert-signed-by":   certificate.Issuer.CommonName,
		}))
	})
}

func headlessCertificateIsGood(t *testing.T, cluster *controlplane.Cluster) {
	service := createService(t, cluster, "headless", func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
	_, certificate := filled(t, cluster, service)
	isFor(t, certificate, "headless.default.svc.cluster.local", "pod-1.headless.default.svc", "pod-1.headless.default.svc.cluster.local")
}

func secretIsMended(t *testing.T, cluster *controlplane.Cluster) {
	service := createService(t, cluster, "mended")
	another, _ := filled(t, cluster, createService(t, cluster, "another"))
	selfSigned, key, err := certutil.GenerateSelfSignedCertKey("mended.default.svc", nil, []string{"mended.default.svc.cluster.local"})
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(*corev1.Secret){
		"no certificate":                          func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = []byte("none") },
		"the key of another certificate":          func(s *corev1.Secret) { s.Data[corev1.TLSPrivateKeyKey] = key },
		"a certificate of another Service":        func(s *corev1.Secret) { s.Data = another.Data },
		"a certificate by nobody that we know":    func(s *corev1.Secret) { s.Data = map[string][]byte{"tls.crt": selfSigned, "tls.key": key} },
		"one key too many":                        func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("more") },
		"no word of when the certificate expires": func(s *corev1.Secret) { delete(s.Annotations, expiryAnnotation) },
	} {
		t.Run(name, func(t *testing.T) {
			secret, _ := filled(t, cluster, service)
			damage(secret)
			if err := cluster.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			filled(t, cluster, service)
		})
	}
	t.Run("nothing", func(t *testing.T) {
		secret, _ := filled(t, cluster, service)
		if err := cluster.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		filled(t, cluster, service)
	})
}

func configMapIsFilled(t *testing.T, cluster *controlplane.Cluster) {
	configMap := createConfigMap(t, cluster, map[string]string{injectAnnotation: "true"})
	isFilled := func(g gomega.Gomega) {
		get(t, g, cluster, configMap)
		g.Expect(slices.Collect(maps.Keys(configMap.Data))).To(gomega.ConsistOf("service-ca.crt"))
		g.Expect(x509.NewCertPool().AppendCertsFromPEM([]byte(configMap.Data["service-ca.crt"]))).To(gomega.BeTrue())
	}
	eventually(t, isFilled)
	configMap.Data = map[string]string{"service-ca.crt": "edited", "more": "of it"}
	if err := cluster.Update(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	eventually(t, isFilled)
}

// What comes after them is handled after them: once it is, so are they.
func othersAreLeftAlone(t *testing.T, cluster *controlplane.Cluster) {
	service := createService(t, cluster, "other", func(s *corev1.Service) { s.Annotations = map[string]string{"other": "true"} })
	switchedOff := createConfigMap(t, cluster, map[string]string{injectAnnotation: "false"})
	unmarked := createConfigMap(t, cluster, nil)
	filled(t, cluster, createService(t, cluster, "after-others"))
	injected(t, cluster)

	for _, object := range []client.Object{service, switchedOff, unmarked} {
		before := object.GetResourceVersion()
		get(t, gomega.NewWithT(t), cluster, object)
		if object.GetResourceVersion() != before {
			t.Errorf("%s was written", object.GetName())
		}
	}
	secrets := &corev1.SecretList{}
	if err := cluster.List(t.Context(), secrets, client.InNamespace(service.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if secret.Annotations[serviceNameAnnotation] == service.Name {
			t.Errorf("there is a Secret %s", secret.Name)
		}
	}
}

func strangersSecretIsLeftAlone(t *testing.T, cluster *controlplane.Cluster) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "robbed-tls"},
		StringData: map[string]string{"password": "old"},
	}
	if err := cluster.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	service := createService(t, cluster, "robbed")
	eventually(t, func(g gomega.Gomega) {
		get(t, g, cluster, service)
		g.Expect(service.Annotations[errorAnnotation]).To(gomega.ContainSubstring("default/robbed-tls does not have corresponding service UID"))
		g.Expect(service.Annotations).NotTo(gomega.HaveKey(signedByAnnotation))
	})
	before := secret.ResourceVersion
	get(t, gomega.NewWithT(t), cluster, secret)
	if secret.ResourceVersion != before {
		t.Error("the Secret was written")
	}

	if err := cluster.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	filled(t, cluster, service)
	eventually(t, func(g gomega.Gomega) {
		get(t, g, cluster, service)
		g.Expect(service.Annotations).To(gomega.HaveKey(signedByAnnotation))
		g.Expect(service.Annotations).NotTo(gomega.HaveKey(errorAnnotation))
	})
}

func podIsRestricted(t *testing.T, cluster *controlplane.Cluster) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "service-ca"}}
	get(t, gomega.NewWithT(t), cluster, deployment)
	template := deployment.Spec.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "service-ca", Labels: template.Labels},
		Spec:       template.Spec,
	}
	if err := cluster.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	if err := cluster.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("the namespace doesn't refuse a pod that isn't restricted: %v", err)
	}
}

func isFor(t *testing.T, certificate *x509.Certificate, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := certificate.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}
