// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/example-inc/memcached-operator/test/standins/internal/controlplane"
)

const configDir = "../../../config"

// The API server is a real one and knows the roles of config/rbac; the stand-in is one of its ServiceAccounts.
func TestRequestsAreReviewedByTheAPIServer(t *testing.T) {
	cluster := controlplane.Start(t)
	own := as(t, cluster, "manager", readRole(t, "metrics_auth_role.yaml"))
	allowed := as(t, cluster, "allowed", readRole(t, "metrics_reader_role.yaml")).BearerToken
	stranger := as(t, cluster, "stranger", nil).BearerToken

	var passedOn atomic.Int32
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		passedOn.Add(1)
		if _, err := io.WriteString(w, "memcached_up 1"+request.Header.Get("Authorization")); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(upstream.Close)
	certificates := newCertificates(t)
	p := start(t, own, certificates, "--upstream="+upstream.URL)

	for _, request := range []struct {
		name, method, path, token string
		status                    int
	}{
		{"the right and a valid token", http.MethodGet, "/metrics", allowed, http.StatusOK},
		{"no token", http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		{"a token that nobody issued", http.MethodGet, "/metrics", "invented", http.StatusUnauthorized},
		{"a token whose end is missing", http.MethodGet, "/metrics", allowed[:len(allowed)-8], http.StatusUnauthorized},
		{"no right", http.MethodGet, "/metrics", stranger, http.StatusForbidden},
		{"the right to get, not to create", http.MethodPost, "/metrics", allowed, http.StatusForbidden},
		{"a path that isn't allowed", http.MethodGet, "/debug/pprof", allowed, http.StatusNotFound},
		{"a path below one that is", http.MethodGet, "/metrics/more", allowed, http.StatusNotFound},
		{"another path and no token", http.MethodGet, "/", "", http.StatusNotFound},
		{"a path that means an allowed one", http.MethodGet, "/metrics/", allowed, http.StatusBadRequest},
	} {
		t.Run(request.name, func(t *testing.T) {
			status, body := send(t, certificates.client(t), p.requests.Listener, request.method, request.path, request.token)
			if status != request.status {
				t.Errorf("the answer is %d %q, not %d", status, body, request.status)
			}
			if want := "memcached_up 1"; request.status == http.StatusOK && body != want {
				t.Errorf("the answer is %q, and what the upstream says to a request without a token is %q", body, want)
			}
		})
	}
	if passedOn.Load() != 1 {
		t.Errorf("%d requests were passed on, and one was allowed", passedOn.Load())
	}

	t.Run("an upstream that is gone", func(t *testing.T) {
		upstream.Close()
		status, body := send(t, certificates.client(t), p.requests.Listener, http.MethodGet, "/metrics", allowed)
		if status != http.StatusBadGateway {
			t.Errorf("the answer is %d %q", status, body)
		}
	})
}

func TestTheProbeOfTheManifestIsAnswered(t *testing.T) {
	certificates := newCertificates(t)
	p := start(t, &rest.Config{}, certificates)
	sidecar := readSidecar(t)
	for name, probe := range map[string]*corev1.Probe{"liveness": sidecar.LivenessProbe, "readiness": sidecar.ReadinessProbe} {
		t.Run(name, func(t *testing.T) {
			get := probe.HTTPGet
			port := slices.IndexFunc(sidecar.Ports, func(port corev1.ContainerPort) bool { return port.Name == get.Port.StrVal })
			if port < 0 {
				t.Fatalf("it names the port %q, and there are only %v", get.Port.StrVal, sidecar.Ports)
			}
			given := parseManifest(t)
			if want := fmt.Sprintf(":%d", sidecar.Ports[port].ContainerPort); given.endpointsAddress != want {
				t.Errorf("it goes to %s, and %s is served", want, given.endpointsAddress)
			}
			if get.Scheme != corev1.URISchemeHTTPS {
				t.Errorf("it goes by %s", get.Scheme)
			}
			status, body := send(t, certificates.client(t), p.endpoints.Listener, http.MethodGet, get.Path, "")
			if status != http.StatusOK || body != "ok" {
				t.Errorf("the answer is %d %q", status, body)
			}
		})
	}
}

func TestTLSIsAsTheManifestSays(t *testing.T) {
	certificates := newCertificates(t)
	for server, listener := range start(t, &rest.Config{}, certificates).listeners() {
		for offer, tried := range map[string]struct {
			config  *tls.Config
			refusal string
		}{
			"TLS 1.3": {&tls.Config{}, ""},
			"TLS 1.2": {&tls.Config{MaxVersion: tls.VersionTLS12}, ""},
			"TLS 1.1": {&tls.Config{MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11}, "protocol version not supported"},
			"a cipher suite that isn't listed": {
				&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}},
				"handshake failure",
			},
		} {
			t.Run(server+"/"+offer, func(t *testing.T) {
				_, err := certificates.handshake(t, listener, tried.config)
				if tried.refusal == "" && err != nil {
					t.Errorf("refused: %v", err)
				}
				if tried.refusal != "" && (err == nil || !strings.Contains(err.Error(), tried.refusal)) {
					t.Errorf("the error is %v, and not %q", err, tried.refusal)
				}
			})
		}
	}
}

func TestTLSOlderThanToldIsRefused(t *testing.T) {
	certificates := newCertificates(t)
	for server, listener := range start(t, &rest.Config{}, certificates, "--tls-min-version=VersionTLS13").listeners() {
		t.Run(server, func(t *testing.T) {
			_, err := certificates.handshake(t, listener, &tls.Config{MaxVersion: tls.VersionTLS12})
			if err == nil || !strings.Contains(err.Error(), "protocol version not supported") {
				t.Errorf("TLS 1.2 is not refused: %v", err)
			}
		})
	}
}

func TestHTTP2IsSpokenUnlessDisabled(t *testing.T) {
	certificates := newCertificates(t)
	for value, want := range map[string]int{"true": 1, "false": 2} {
		for server, listener := range start(t, &rest.Config{}, certificates, "--http2-disable="+value).listeners() {
			t.Run(value+"/"+server, func(t *testing.T) {
				response, err := certificates.client(t).Get("https://" + listener.Addr().String() + "/healthz")
				if err != nil {
					t.Fatal(err)
				}
				if err := response.Body.Close(); err != nil {
					t.Fatal(err)
				}
				if response.ProtoMajor != want {
					t.Errorf("the answer comes by %s", response.Proto)
				}
			})
		}
	}
}

// The certificate is renewed as the kubelet does it with a Secret's volume: a new folder takes the old one's place.
func TestARenewedCertificateIsShown(t *testing.T) {
	certificates := newCertificates(t)
	p := start(t, &rest.Config{}, certificates)
	before, err := certificates.handshake(t, p.requests.Listener, &tls.Config{})
	if err != nil {
		t.Fatal(err)
	}

	certificates.renew(t)
	for _, listener := range p.listeners() {
		gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
			now, err := certificates.handshake(t, listener, &tls.Config{})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(now.PeerCertificates[0].Equal(before.PeerCertificates[0])).To(gomega.BeFalse())
		}).WithTimeout(30 * time.Second).WithPolling(50 * time.Millisecond).Should(gomega.Succeed())
	}
}

// start runs a stand-in with the manifest's flags, and others after them, which count more.
func start(t *testing.T, config *rest.Config, certificates *certificates, flags ...string) *proxy {
	t.Helper()
	given := parseManifest(t, append([]string{
		"--secure-listen-address=127.0.0.1:0",
		"--tls-cert-file=" + filepath.Join(certificates.dir, corev1.TLSCertKey),
		"--tls-private-key-file=" + filepath.Join(certificates.dir, corev1.TLSPrivateKeyKey),
	}, flags...)...)
	given.endpointsAddress = "127.0.0.1:0" // whichever port is free
	p, err := newProxy(given, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it ended with an error: %v", err)
		}
	})
	return p
}

func (p *proxy) listeners() map[string]net.Listener {
	return map[string]net.Listener{"requests": p.requests.Listener, "endpoints": p.endpoints.Listener}
}

// parseManifest reads the flags of the manifest, and others after them.
func parseManifest(t *testing.T, more ...string) *options {
	t.Helper()
	given, err := parse(append(readSidecar(t).Args, more...))
	if err != nil {
		t.Fatal(err)
	}
	return given
}

// readSidecar is what the manifest says of the container that this program stands in for.
func readSidecar(t *testing.T) corev1.Container {
	t.Helper()
	deployment := read[appsv1.Deployment](t, "default/manager_auth_proxy_patch.yaml")
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == "kube-rbac-proxy" {
			return container
		}
	}
	t.Fatal("the manifest has no sidecar")
	return corev1.Container{}
}

func readRole(t *testing.T, file string) *rbacv1.ClusterRole {
	t.Helper()
	return read[rbacv1.ClusterRole](t, filepath.Join("rbac", file))
}

func read[T any](t *testing.T, file string) *T {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(configDir, file))
	if err != nil {
		t.Fatal(err)
	}
	object := new(T)
	if err := yaml.Unmarshal(manifest, object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

// send returns the status and the body of the answer.
func send(t *testing.T, c *http.Client, to net.Listener, method, path, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+to.Addr().String()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
