// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-inc/memcached-operator/test/standins/internal/controlplane"
)

// start runs the stand-in, until the test ends or what it returns is called.
func start(t *testing.T, cluster *controlplane.Cluster) (stop func()) {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":service-ca"
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, config) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it ended with an error: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func applyManifest(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	manifest, err := os.ReadFile("service-ca.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// createService makes one that asks for a certificate in a Secret of its name and "-tls".
func createService(t *testing.T, cluster *controlplane.Cluster, name string, changes ...func(*corev1.Service)) *corev1.Service {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Annotations: map[string]string{wantedAnnotation: name + "-tls"},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}
	for _, change := range changes {
		change(service)
	}
	if err := cluster.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	return service
}

func createConfigMap(t *testing.T, cluster *controlplane.Cluster, annotations map[string]string) *corev1.ConfigMap {
	t.Helper()
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "test-", Annotations: annotations},
		Data:       map[string]string{"before": "it was filled"},
	}
	if err := cluster.Create(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	return configMap
}

// filled waits until a client that trusts what a ConfigMap says would trust a server that shows what the Service's Secret
// holds.
func filled(t *testing.T, cluster *controlplane.Cluster, service *corev1.Service) (*corev1.Secret, *x509.Certificate) {
	t.Helper()
	options := x509.VerifyOptions{DNSName: service.Name + "." + service.Namespace + ".svc", Roots: x509.NewCertPool()}
	options.Roots.AppendCertsFromPEM([]byte(injected(t, cluster)))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name + "-tls"}}
	var shown *x509.Certificate
	eventually(t, func(g gomega.Gomega) {
		get(t, g, cluster, secret)
		pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		g.Expect(err).NotTo(gomega.HaveOccurred())
		shown = pair.Leaf
		_, err = shown.Verify(options)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(secret.Data).To(gomega.HaveLen(2))
		g.Expect(secret.Annotations).To(gomega.HaveKeyWithValue(expiryAnnotation, shown.NotAfter.Format(time.RFC3339)))
	})
	return secret, shown
}

// injected is what a new ConfigMap gets that asks for the authority.
func injected(t *testing.T, cluster *controlplane.Cluster) string {
	t.Helper()
	configMap := createConfigMap(t, cluster, map[string]string{injectAnnotation: "true"})
	eventually(t, func(g gomega.Gomega) {
		get(t, g, cluster, configMap)
		g.Expect(configMap.Data).To(gomega.HaveKey(bundleKey))
	})
	return configMap.Data[bundleKey]
}

func get(t *testing.T, g gomega.Gomega, cluster *controlplane.Cluster, object client.Object) {
	t.Helper()
	g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
}

func eventually(t *testing.T, check func(gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(30 * time.Second).WithPolling(20 * time.Millisecond).Should(gomega.Succeed())
}
