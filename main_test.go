// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/options"
)

const memcachedImage = "docker.io/library/memcached:1.6.45"

// asManager in the environment makes this test binary the manager.
const asManager = "TEST_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The manager as a whole, with leader election, on an API server of its own: what it does when that lacks the CRD, and
// when it goes away.
func TestTheManagerAndItsAPIServer(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("starting etcd and kube-apiserver (make test builds them): %v", err)
	}
	t.Cleanup(func() {
		if stopErr := environment.Stop(); stopErr != nil {
			t.Error(stopErr)
		}
	})
	// The manager reaches the API server by a wire of its own, which can be cut.
	wire := &wire{to: strings.TrimPrefix(config.Host, "https://")}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	contents := strings.Replace(string(environment.KubeConfig), wire.to, wire.listen(t), 1)
	if err = os.WriteFile(kubeconfig, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)

	arguments := []string{"--leader-elect", "--leader-election-namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	given, err := options.Parse(arguments, func(name string) string {
		return map[string]string{options.RelatedImageMemcached: memcachedImage}[name]
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("without the CRD it ends with an exit code and an error that tells what to do", func(t *testing.T) {
		manager := exec.CommandContext(t.Context(), os.Args[0], arguments...)
		manager.Env = append(os.Environ(), asManager+"=1", options.RelatedImageMemcached+"="+memcachedImage)
		output, _ := manager.CombinedOutput() // the exit code is looked at below
		if code := manager.ProcessState.ExitCode(); code != 1 {
			t.Errorf("the exit code is %d", code)
		}
		for _, part := range []string{"memcacheds.cache.example.com", "make install"} {
			if !strings.Contains(string(output), part) {
				t.Errorf("its output does not contain %q:\n%s", part, output)
			}
		}
	})

	t.Run("it survives an API server that is away for a minute", func(t *testing.T) {
		crds := envtest.CRDInstallOptions{Paths: []string{filepath.Join("config", "crd", "bases")}, ErrorIfPathMissing: true}
		if _, err := envtest.InstallCRDs(config, crds); err != nil {
			t.Fatal(err)
		}
		scheme := clientgoscheme.Scheme
		if err := cachev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		cluster, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		g := gomega.NewWithT(t)
		create := func(name string) {
			t.Helper()
			mc := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: cachev1.MemcachedSpec{Size: 1}}
			g.Expect(cluster.Create(t.Context(), mc)).To(gomega.Succeed())
		}
		served := func(name string) {
			t.Helper()
			key := client.ObjectKey{Namespace: "default", Name: name}
			g.Eventually(func() error { return cluster.Get(t.Context(), key, &appsv1.Deployment{}) }).
				WithTimeout(time.Minute).WithPolling(time.Second).Should(gomega.Succeed())
		}

		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, given) }()
		create("before")
		served("before")

		wire.cut()
		create("meanwhile")
		select {
		case err = <-ended:
			t.Fatalf("the manager ended while the API server was away: %v", err)
		case <-time.After(time.Minute):
		}
		wire.mend()
		served("meanwhile")
		create("after")
		served("after")

		cancel()
		if err = <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// wire passes TCP connections on to an address, unless it is cut.
type wire struct {
	to string

	mutex sync.Mutex
	isCut bool
	ends  []net.Conn
}

// listen returns the address to connect to.
func (w *wire) listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.cut()
		_ = listener.Close()
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // closed
			}
			w.connect(near)
		}
	}()
	return listener.Addr().String()
}

func (w *wire) connect(near net.Conn) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.isCut {
		_ = near.Close()
		return
	}
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		_ = near.Close()
		return
	}
	w.ends = append(w.ends, near, far)
	for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(ends[0], ends[1]) // ends when either side is closed
			_ = ends[0].Close()
		}()
	}
}

// cut ends all connections, and lets no new one through until it is mended. Who connects is hung up on: to close the
// listener would give its port to somebody else.
func (w *wire) cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isCut = true
	for _, end := range w.ends {
		_ = end.Close()
	}
	w.ends = nil
}

func (w *wire) mend() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isCut = false
}
