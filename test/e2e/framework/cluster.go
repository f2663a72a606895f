// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package framework is what the end-to-end suites have in common: a cluster, kubectl as users type it, a memcached client
// in the cluster, and waiting for what should come.
package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega/format"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

const (
	// OwnLabel marks the namespaces of the tests.
	OwnLabel = "cache.example.com/e2e"
	// ClientNamespace has the pod "client", which all tests use memcached from.
	ClientNamespace = "e2e-client"
)

var (
	// Client is the tests' own, with all rights. Connect makes it.
	Client client.Client
	// ClientImage runs memcacheclient.
	ClientImage = os.Getenv("MEMCACHECLIENT_IMG")
)

// Connect makes Client. It refuses a cluster that has a Memcached of somebody else, since a suite removes the CRD at its
// end, and with it every Memcached. Client knows Kubernetes' own kinds, Memcached, and those that kinds adds.
func Connect(kinds ...func(*runtime.Scheme) error) error {
	ctrl.SetLogger(logr.Discard()) // tests say what matters
	format.UseStringerRepresentation = true
	if os.Getenv("KUBECONFIG") == "" {
		return errors.New("KUBECONFIG is not set: run these tests by `make e2e` or `make e2e-olm`, which set it to a local cluster")
	}
	if ClientImage == "" {
		return errors.New("MEMCACHECLIENT_IMG is not set: run these tests by `make e2e` or `make e2e-olm`, which set it")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1.AddToScheme(scheme))
	for _, add := range kinds {
		utilruntime.Must(add(scheme))
	}
	if Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}

	// Undeploying removes every Memcached in the cluster, so there must be none but what an earlier run left.
	var memcacheds cachev1.MemcachedList
	if err = Client.List(context.Background(), &memcacheds); err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	for _, mc := range memcacheds.Items {
		var namespace corev1.Namespace
		if err = Client.Get(context.Background(), client.ObjectKey{Name: mc.Namespace}, &namespace); err != nil {
			return err
		}
		if namespace.Labels[OwnLabel] == "" {
			return fmt.Errorf("the cluster has the Memcached %q in namespace %q, and these tests would delete it: use another cluster", mc.Name, mc.Namespace)
		}
	}
	return nil
}

// PullPolicy is for images that were pushed just now, perhaps once more under the same tag.
func PullPolicy() corev1.PullPolicy {
	if os.Getenv("LOCALCLUSTER_REGISTRY") != "" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// StartClient makes the pod "client" of ClientNamespace anew and waits until it runs.
func StartClient() error {
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   ClientNamespace,
		Labels: map[string]string{OwnLabel: "true", "pod-security.kubernetes.io/enforce": "restricted"},
	}}
	// An earlier run that was killed left one.
	if err := Client.Delete(ctx, namespace.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return err
	}
	if _, err := TryKubectl("", "wait", "--for=delete", "namespace/"+ClientNamespace, "--timeout=3m"); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: ClientNamespace}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: ClientNamespace}, Spec: ClientPodSpec()}
	pod.Spec.Containers[0].ImagePullPolicy = PullPolicy()
	pod.Spec.ServiceAccountName = account.Name // the account "default" comes a little after its namespace
	for _, obj := range []client.Object{namespace, account, pod} {
		if err := Client.Create(ctx, obj); err != nil {
			return err
		}
	}
	_, err := TryKubectl("", "-n", ClientNamespace, "wait", "--for=condition=Ready", "pod/client", "--timeout=3m")
	return err
}

// ClientPodSpec runs memcacheclient, and nothing that it does takes time to end.
func ClientPodSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "client", Image: ClientImage, Args: []string{"serve"},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

// RemoveNamespaces waits for the end of the namespaces that the tests deleted, so that the operator is still there for
// whatever their end makes it do.
func RemoveNamespaces() error {
	ctx := context.Background()
	if err := Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ClientNamespace), client.GracePeriodSeconds(1)); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, Polling, Patience, true, func(ctx context.Context) (bool, error) {
		var namespaces corev1.NamespaceList
		if err := Client.List(ctx, &namespaces, client.HasLabels{OwnLabel}); err != nil {
			return false, err
		}
		for i := range namespaces.Items {
			if namespaces.Items[i].DeletionTimestamp.IsZero() {
				if err := Client.Delete(ctx, &namespaces.Items[i]); client.IgnoreNotFound(err) != nil {
					return false, err
				}
			}
		}
		return len(namespaces.Items) == 0, nil
	})
}

// NewNamespace makes a namespace for one test and deletes it with the test. If the test fails, it tells what was in there.
func NewNamespace(t *testing.T, labels ...string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{OwnLabel: "true"}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		namespace.Labels[key] = value
	}
	if err := Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("namespace %s at the end of the failed test:\n%s%s", namespace.Name, NamespaceState(namespace.Name), OperatorState())
		}
		if err := Client.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting the namespace: %v", err)
		}
	})
	return namespace.Name
}

// NamespaceState shows the Memcacheds of a namespace and what belongs to them.
func NamespaceState(namespace string) string {
	return Outputs(
		[]string{"-n", namespace, "get", "memcacheds", "-o", "yaml"},
		[]string{"-n", namespace, "get", "all", "-o", "wide"},
		[]string{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
	)
}

// OperatorState shows the operator's pods, in whatever namespace they are, and the last that they logged.
func OperatorState() string {
	commands := [][]string{{"get", "pods", "-A", "--selector=control-plane=controller-manager", "-o", "wide"}}
	var pods corev1.PodList
	if err := Client.List(context.Background(), &pods, client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		return err.Error()
	}
	for _, pod := range pods.Items {
		commands = append(commands, []string{"-n", pod.Namespace, "logs", pod.Name, "-c", "manager", "--tail=40"})
	}
	return Outputs(commands...)
}
