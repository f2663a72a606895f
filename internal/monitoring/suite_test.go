// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package monitoring

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/example-inc/memcached-operator/internal/monitoring/monitoringtest"
)

// A real kube-apiserver and etcd, which knows the rights that config/default gives the manager, and that guards owner
// references as OpenShift does. There is no service CA and no Prometheus.
var (
	testConfig *rest.Config
	testClient client.Client
)

const (
	config   = "../../config"
	patience = 30 * time.Second
	// testPeriod is short, so that much is looked at while nothing must happen.
	testPeriod = 50 * time.Millisecond
	quiet      = time.Second
)

func TestMain(m *testing.M) {
	os.Exit(withControlPlane(m.Run))
}

func withControlPlane(run func() int) int {
	ctrl.SetLogger(logr.Discard()) // tests say what matters
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	var err error
	if testConfig, err = environment.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "starting etcd and kube-apiserver (make test builds them):", err)
		return 1
	}
	defer func() {
		if stopErr := environment.Stop(); stopErr != nil {
			fmt.Fprintln(os.Stderr, "stopping etcd and kube-apiserver:", stopErr)
		}
	}()
	if testClient, err = client.New(testConfig, client.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// crds are the options to install the Prometheus operator's kind with.
func crds(t *testing.T) envtest.CRDInstallOptions {
	t.Helper()
	return envtest.CRDInstallOptions{Paths: []string{monitoringtest.ServiceMonitorCRD(t)}, ErrorIfPathMissing: true}
}

func installCRD(t *testing.T) {
	t.Helper()
	if _, err := envtest.InstallCRDs(testConfig, crds(t)); err != nil {
		t.Fatal(err)
	}
}

// uninstallCRD waits until the API server doesn't serve the kind any more.
func uninstallCRD(t *testing.T) {
	t.Helper()
	if err := envtest.UninstallCRDs(testConfig, crds(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) {
		_, err := testClient.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil { // it may only be remembered
			err = testClient.List(t.Context(), monitors())
		}
		g.Expect(err).To(gomega.HaveOccurred())
	})
}

func monitors() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind("ServiceMonitorList"))
	return list
}

// render is what `kubectl kustomize` makes of a folder of config, in another namespace.
func render(t *testing.T, dir, namespace string) []*unstructured.Unstructured {
	t.Helper()
	overlay := t.TempDir()
	base, err := filepath.Abs(filepath.Join(config, dir))
	if err == nil {
		base, err = filepath.Rel(overlay, base)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("namespace: %s\nresources: [%q]\n", namespace, base)
	if err = os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range rendered.Resources() {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(resource.MustYaml()), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// install makes what config/default holds for a namespace, and the scraper's rights, but not the manager's rights to
// Memcacheds and what belongs to them: none of those may be needed here.
func install(t *testing.T) (namespace string) {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operators-"}}
	if err := testClient.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	for _, object := range render(t, "default", made.Name) {
		ofScraper := strings.Contains(object.GetName(), "metrics-scraper")
		if object.GetNamespace() == "" && !ofScraper {
			continue
		}
		if object.GetNamespace() == "" {
			object.SetName(object.GetName() + "-" + made.Name) // OLM too makes one for each
			if role, found, _ := unstructured.NestedString(object.Object, "roleRef", "name"); found {
				if err := unstructured.SetNestedField(object.Object, role+"-"+made.Name, "roleRef", "name"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := testClient.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return made.Name
}

// as is the configuration of a client that acts as the service account.
func as(t *testing.T, namespace, account string) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	subject := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := testClient.SubResource("token").Create(t.Context(), subject, request); err != nil {
		t.Fatal(err)
	}
	return withToken(request.Status.Token)
}

func withToken(token string) *rest.Config {
	own := rest.AnonymousClientConfig(testConfig)
	own.BearerToken = token
	own.QPS = -1
	return own
}

// running is a keeper, and what can be seen of it.
type running struct {
	stop func()

	mutex  sync.Mutex
	writes []string
	lines  []string // of the log
	errors []string
}

// start runs one with no more rights than the manager has. It stops with the test.
func start(t *testing.T, namespace string) *running {
	t.Helper()
	seen := &running{}
	own := as(t, namespace, Deployment) // the account has the name of the Deployment
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				seen.note(&seen.writes, request.Method+" "+request.URL.Path)
			}
			return next.RoundTrip(request)
		})
	})
	uncached, err := client.New(own, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	log := funcr.New(func(_, text string) {
		t.Log(text)
		seen.note(&seen.lines, text)
		if strings.Contains(text, `"error"=`) {
			seen.note(&seen.errors, text)
		}
	}, funcr.Options{})
	k := &keeper{client: uncached, log: log, namespace: namespace, period: testPeriod}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Start(ctx) }()
	seen.stop = sync.OnceFunc(func() {
		select {
		case err := <-done:
			t.Errorf("it ended by itself, with %v", err)
		default:
			cancel()
			if err := <-done; err != nil {
				t.Errorf("it ended with %v", err)
			}
		}
	})
	t.Cleanup(seen.stop)
	return seen
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (r *running) note(list *[]string, text string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	*list = append(*list, text)
}

// seen is a copy of a list, as it is now.
func (r *running) seen(list *[]string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string{}, *list...)
}

// eventually waits until check finds nothing to complain about.
func eventually(t *testing.T, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(patience).WithPolling(testPeriod).Should(gomega.Succeed())
}

// stays fails as soon as check finds something to complain about, for a while.
func stays(t *testing.T, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Consistently(check).WithTimeout(quiet).WithPolling(testPeriod).Should(gomega.Succeed())
}
