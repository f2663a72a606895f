// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-inc/memcached-operator/internal/monitoring/monitoringtest"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

const serviceMonitorCRD = "servicemonitors.monitoring.coreos.com"

// Covers metrics as Prometheus gets them: the operator's ServiceMonitor is followed to the letter, against the service CA's
// certificate and through the sidecar. The first installation is there before the Prometheus operator, the second comes
// after it and into another namespace, so that nothing can depend on a name.
func TestMetricsAreScrapedAsTheServiceMonitorSays(t *testing.T) {
	removeWhatRemains(t)
	removeServiceMonitorCRD(t)
	t.Cleanup(func() { removeServiceMonitorCRD(t) })
	first, second := framework.NewNamespace(t), framework.NewNamespace(t)
	install(t, first, current, first)
	framework.Kubectl(t, "", "apply", "--server-side", "-f", monitoringtest.ServiceMonitorCRD(t))
	install(t, second, current, second)
	for _, namespace := range []string{second, first} {
		isScraped(t, namespace)
	}
	for _, namespace := range []string{second, first} {
		unsubscribe(t, namespace)
		framework.Eventually(t, func(g gomega.Gomega) {
			g.Expect(framework.TryKubectl("", "-n", namespace, "get", "servicemonitors", "-o", "name")).To(gomega.BeEmpty())
		})
	}
}

// isScraped follows the ServiceMonitor of the operator in the namespace.
func isScraped(t *testing.T, namespace string) {
	t.Helper()
	var monitor serviceMonitor
	framework.Eventually(t, func(g gomega.Gomega) { monitor = readServiceMonitor(g, namespace) })
	if want := deployment + "-metrics-service." + namespace + ".svc"; monitor.endpoint().TLSConfig.ServerName != want {
		t.Errorf("serverName is %q, want %q", monitor.endpoint().TLSConfig.ServerName, want)
	}
	framework.Eventually(t, func(g gomega.Gomega) {
		answers := monitor.scrape(g, namespace, monitor.token(g, namespace))
		g.Expect(answers).To(gomega.HaveLen(2), "both replicas answer")
		for _, answer := range answers {
			g.Expect(answer.status).To(gomega.Equal(http.StatusOK))
			g.Expect(answer.body).To(gomega.ContainSubstring("go_goroutines"))
		}
	})
	framework.Kubectl(t, namespace, "create", "serviceaccount", "nobody")
	for who, test := range map[string]struct {
		token string
		want  int
	}{
		"somebody without a token":   {"", http.StatusUnauthorized},
		"somebody without the right": {strings.TrimSpace(framework.Kubectl(t, namespace, "create", "token", "nobody")), http.StatusForbidden},
	} {
		g := gomega.NewWithT(t)
		answers := monitor.scrape(g, namespace, test.token)
		g.Expect(answers).To(gomega.HaveLen(2), who)
		for _, answer := range answers {
			g.Expect(answer.status).To(gomega.Equal(test.want), who)
			g.Expect(answer.body).NotTo(gomega.ContainSubstring("go_goroutines"), who)
		}
		t.Logf("%s gets %d", who, test.want)
	}
	t.Logf("in namespace %s, Prometheus gets the metrics of both replicas from %s", namespace, monitor.endpoint().TLSConfig.ServerName)
}

func removeServiceMonitorCRD(t *testing.T) {
	t.Helper()
	framework.Kubectl(t, "", "delete", "crd", serviceMonitorCRD, "--ignore-not-found")
}

// serviceMonitor has the fields that ours uses.
type serviceMonitor struct {
	Spec struct {
		Selector  struct{ MatchLabels map[string]string }
		Endpoints []endpoint
	}
}

type endpoint struct {
	Port, Scheme, Path string
	TLSConfig          struct {
		ServerName string
		CA         struct{ ConfigMap corev1.ConfigMapKeySelector }
	}
	Authorization struct{ Credentials corev1.SecretKeySelector }
}

func (m serviceMonitor) endpoint() endpoint { return m.Spec.Endpoints[0] }

func readServiceMonitor(g gomega.Gomega, namespace string) serviceMonitor {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"})
	framework.Get(g, namespace, deployment+"-metrics", found)
	text, err := found.MarshalJSON()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var monitor serviceMonitor
	g.Expect(json.Unmarshal(text, &monitor)).To(gomega.Succeed())
	g.Expect(monitor.Spec.Endpoints).To(gomega.HaveLen(1))
	g.Expect(monitor.endpoint().Scheme).To(gomega.Equal("https"))
	return monitor
}

func (m serviceMonitor) token(g gomega.Gomega, namespace string) string {
	credentials := m.endpoint().Authorization.Credentials
	secret := framework.Get(g, namespace, credentials.Name, &corev1.Secret{})
	g.Expect(secret.Data[credentials.Key]).NotTo(gomega.BeEmpty())
	return string(secret.Data[credentials.Key])
}

type answer struct {
	status int
	body   string
}

// scrape asks every address behind the selected Service, as Prometheus does.
func (m serviceMonitor) scrape(g gomega.Gomega, namespace, token string) []answer {
	ctx := context.Background()
	reference := m.endpoint().TLSConfig.CA.ConfigMap
	bundle := framework.Get(g, namespace, reference.Name, &corev1.ConfigMap{})
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM([]byte(bundle.Data[reference.Key]))).To(gomega.BeTrue(), "the CA bundle")
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: m.endpoint().TLSConfig.ServerName, MinVersion: tls.VersionTLS12,
	}}
	defer transport.CloseIdleConnections()

	var services corev1.ServiceList
	g.Expect(framework.Client.List(ctx, &services, client.InNamespace(namespace), client.MatchingLabels(m.Spec.Selector.MatchLabels))).To(gomega.Succeed())
	g.Expect(services.Items).To(gomega.HaveLen(1))
	var slices discoveryv1.EndpointSliceList
	g.Expect(framework.Client.List(ctx, &slices, client.InNamespace(namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: services.Items[0].Name})).To(gomega.Succeed())

	var answers []answer
	for _, slice := range slices.Items {
		for _, port := range slice.Ports {
			if *port.Name != m.endpoint().Port {
				continue
			}
			for _, pod := range slice.Endpoints {
				address := net.JoinHostPort(pod.Addresses[0], strconv.Itoa(int(*port.Port)))
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				if token != "" {
					request.Header.Set("Authorization", "Bearer "+token)
				}
				response, err := transport.RoundTrip(request)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				body, err := io.ReadAll(response.Body)
				g.Expect(errors.Join(err, response.Body.Close())).To(gomega.Succeed())
				answers = append(answers, answer{response.StatusCode, string(body)})
			}
		}
	}
	return answers
}
