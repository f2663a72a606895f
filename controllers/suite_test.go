// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/operator-framework/api/crds"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
	"github.com/example-inc/memcached-operator/internal/resources"
)

// A real kube-apiserver and etcd, but no controllers: there is no garbage collector, and no Deployment ever gets a pod
// unless a test makes it. What needs those is tested in test/e2e.
var (
	testScheme = runtime.NewScheme()
	testConfig *rest.Config
	testClient client.Client
)

const (
	defaultImage = "docker.io/library/memcached:1.6.45"
	olderImage   = "docker.io/library/memcached:1.6.44"

	// testSettle is short, so that tests needn't wait, and long enough for a burst to gather.
	testSettle = 100 * time.Millisecond
	patience   = 30 * time.Second
	// quiet is how long nothing must happen before it is taken for granted that nothing will.
	quiet = 2 * time.Second
)

func TestMain(m *testing.M) {
	os.Exit(withControlPlane(m.Run))
}

func withControlPlane(run func() int) int {
	ctrl.SetLogger(logr.Discard()) // tests say what matters
	utilruntime.Must(clientgoscheme.AddToScheme(testScheme))
	utilruntime.Must(cachev1.AddToScheme(testScheme))
	utilruntime.Must(operatorsv2.AddToScheme(testScheme))
	environment := &envtest.Environment{
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{crds.OperatorCondition()},
		CRDDirectoryPaths:     []string{filepath.Join("..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
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
	if testClient, err = client.New(testConfig, client.Options{Scheme: testScheme}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := testClient.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// operator is a running one, limited to the namespace of a test.
type operator struct {
	*requests
	cache cache.Cache
	stop  func()
}

// startOperator starts one as main does, with its own client, whose requests are recorded. It stops with the test.
func startOperator(t *testing.T, namespace string, changes ...func(*operatorOptions)) operator {
	t.Helper()
	options := operatorOptions{platform: platform.Platform{DefaultImage: defaultImage}, requests: &requests{}, settle: testSettle}
	for _, change := range changes {
		change(&options)
	}
	ownConfig := rest.CopyConfig(testConfig)
	ownConfig.QPS = -1
	ownConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if options.wrap != nil {
			next = options.wrap(next)
		}
		options.requests.next = next
		return options.requests
	})
	ownConfig.Impersonate.UserName = options.user
	mgr, err := ctrl.NewManager(ownConfig, ctrl.Options{
		Scheme:                        testScheme,
		Cache:                         CacheOptions([]string{namespace}),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		Controller:                    config.Controller{SkipNameValidation: new(true)}, // several operators in one process
		LeaderElection:                options.elected,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   new(time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := &MemcachedReconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Events:      mgr.GetEventRecorder(Name),
		Platform:    options.platform,
		Concurrency: 4,
		Settle:      options.settle,
	}
	upgradeable := &UpgradeableReconciler{Reader: mgr.GetClient(), Settle: options.settle}
	if err := errors.Join(reconciler.SetupWithManager(mgr), upgradeable.SetupWithManager(mgr)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended with an error: %v", err)
		}
	})
	t.Cleanup(stop)
	return operator{requests: options.requests, cache: mgr.GetCache(), stop: stop}
}

type operatorOptions struct {
	platform platform.Platform
	requests *requests
	settle   time.Duration
	// user is who the operator is to the API server, empty for one who may do everything.
	user string
	// elected operators work only while they lead.
	elected bool
	// wrap comes between the operator and the API server, for all requests.
	wrap func(http.RoundTripper) http.RoundTripper
}

func withDefaultImage(image string) func(*operatorOptions) {
	return func(o *operatorOptions) { o.platform.DefaultImage = image }
}

func withSettle(settle time.Duration) func(*operatorOptions) {
	return func(o *operatorOptions) { o.settle = settle }
}

func withRequests(r *requests) func(*operatorOptions) {
	return func(o *operatorOptions) { o.requests = r }
}

// requests records what an operator asks of the API server, watches and lists aside, and may let it fail.
type requests struct {
	next http.RoundTripper
	// intercept, if set, is called for each request that is recorded, with its position from 1 on. It may return an answer
	// or an error in place of the API server's.
	intercept func(position int, request *http.Request, next http.RoundTripper) (*http.Response, error)

	mutex sync.Mutex
	seen  []string // "PATCH deployments", "GET services", "PATCH memcacheds/status" …
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	kind := resourceOf(request.URL.Path)
	if kind == "" {
		return r.next.RoundTrip(request)
	}
	r.mutex.Lock()
	r.seen = append(r.seen, request.Method+" "+kind)
	position := len(r.seen)
	r.mutex.Unlock()
	if r.intercept != nil {
		return r.intercept(position, request, r.next)
	}
	return r.next.RoundTrip(request)
}

// resourceOf is the resource, and subresource, that the path of a request for one object names; events are written without
// a name. It is empty for lists, watches and discovery.
func resourceOf(path string) string {
	_, rest, inNamespace := strings.Cut(path, "/namespaces/")
	parts := strings.Split(rest, "/")
	switch {
	case !inNamespace:
		return ""
	case len(parts) == 2 && parts[1] == "events":
		return "events"
	case len(parts) == 3:
		return parts[1]
	case len(parts) == 4:
		return parts[1] + "/" + parts[3]
	}
	return ""
}

// count is the number of requests of that kind.
func (r *requests) count(kind string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var count int
	for _, seen := range r.seen {
		if seen == kind {
			count++
		}
	}
	return count
}

// writes are all requests that write, effective or not.
func (r *requests) writes() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var writes []string
	for _, seen := range r.seen {
		if !strings.HasPrefix(seen, http.MethodGet) {
			writes = append(writes, seen)
		}
	}
	return writes
}

// create makes a Memcached of the name "cart" with the spec.
func create(t *testing.T, namespace string, spec cachev1.MemcachedSpec) *cachev1.Memcached {
	t.Helper()
	mc := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: namespace}, Spec: spec}
	if err := testClient.Create(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	return mc
}

// changeSpec edits the spec of mc, whatever its status is by now.
func changeSpec(t *testing.T, mc *cachev1.Memcached, change func(*cachev1.MemcachedSpec)) {
	t.Helper()
	changed := get(t, gomega.NewWithT(t), mc.Namespace, mc.Name, &cachev1.Memcached{})
	before := changed.DeepCopy()
	change(&changed.Spec)
	if err := testClient.Patch(t.Context(), changed, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check finds nothing to complain about.
func eventually(t *testing.T, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(gomega.Succeed())
}

// stays fails as soon as check finds something to complain about, for a while.
func stays(t *testing.T, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Consistently(check).WithTimeout(quiet).WithPolling(50 * time.Millisecond).Should(gomega.Succeed())
}

// get reads an object, and complains if it isn't there.
func get[O client.Object](t *testing.T, g gomega.Gomega, namespace, name string, obj O) O {
	t.Helper()
	g.Expect(testClient.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(gomega.Succeed())
	return obj
}

// settled waits until mc's status describes its current generation and both of its children are there.
func settled(t *testing.T, mc *cachev1.Memcached) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		now := get(t, g, mc.Namespace, mc.Name, &cachev1.Memcached{})
		g.Expect(now.Status.ObservedGeneration).To(gomega.Equal(now.Generation))
		get(t, g, mc.Namespace, mc.Name, &appsv1.Deployment{})
		get(t, g, mc.Namespace, mc.Name, &corev1.Service{})
	})
	time.Sleep(3 * testSettle) // for the pass that their creation wakes
}

// addPods does what the Deployment's controllers would: it makes a ReplicaSet and its ready pods.
func addPods(t *testing.T, deployment *appsv1.Deployment, names ...string) []*corev1.Pod {
	t.Helper()
	replicaSet := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: deployment.Name + "-", Namespace: deployment.Namespace, Labels: deployment.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: deployment.Spec.Template},
	}
	if err := testClient.Create(t.Context(), replicaSet); err != nil {
		t.Fatal(err)
	}
	owner := metav1.NewControllerRef(replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	pods := make([]*corev1.Pod, 0, len(names))
	for _, name := range names {
		pods = append(pods, addPod(t, deployment.Namespace, name, deployment.Spec.Template.Labels, owner))
	}
	return pods
}

func addPod(t *testing.T, namespace, name string, labels map[string]string, owner *metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: defaultImage}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if err := testClient.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := testClient.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// ownLabels are what every object and pod of the Memcached "cart" carries.
func ownLabels() map[string]string {
	mc := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}
	return resources.For(mc, platform.Platform{}, "").Service.Labels
}
