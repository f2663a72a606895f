// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package e2e tests the operator as users run it: in its pod, under its own ServiceAccount, installed by `make deploy`,
// with real memcached pods and a real memcached client in the cluster. What needs no pod is tested in controllers.
//
// `make e2e` runs it on the local cluster, or on the one that KUBECONFIG names. Such a cluster must be able to pull the
// operator's image (IMG) and the client's (MEMCACHECLIENT_IMG; see memcacheclient/Dockerfile), and must have no Memcached
// of somebody else: the operator, its CRD and so every Memcached are removed at the end.
//
// The suite differs from what `make deploy` gives to users in one thing: leader election is short, through the environment
// variables LEADER_ELECTION_*, so that a killed operator is replaced in seconds.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
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
	// defaultImage is what the deployed operator runs, from config/images/images.env; otherImage differs from it.
	defaultImage = "docker.io/library/memcached:1.6.45"
	otherImage   = "docker.io/library/memcached:1.6.44"

	operatorNamespace  = "memcached-operator-system"
	operatorDeployment = "deployment/memcached-operator-controller-manager"

	// ownLabel marks the namespaces of this suite.
	ownLabel = "cache.example.com/e2e"
	// clientNamespace has the pod "client", which all tests use memcached from.
	clientNamespace = "e2e-client"

	// patience is for what must happen, and how quickly is not the point.
	patience = 2 * time.Minute
	polling  = 250 * time.Millisecond
)

// leaderElection replaces a killed leader after 15 s, and still forgives a busy machine that is slow for 8 s.
const leaderElection = `[
	{"name": "LEADER_ELECTION_LEASE_DURATION", "value": "15s"},
	{"name": "LEADER_ELECTION_RENEW_DEADLINE", "value": "8s"},
	{"name": "LEADER_ELECTION_RETRY_PERIOD", "value": "2s"}
]`

var (
	testClient  client.Client
	clientImage = os.Getenv("MEMCACHECLIENT_IMG")
	// beginning is where this run begins in the audit log.
	beginning int64
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(onDeployedOperator(m.Run))
}

// onDeployedOperator runs the tests between deploying and undeploying, and then what can only be said of all of them.
func onDeployedOperator(run func() int) (code int) {
	fail := func(doing string, err error) {
		fmt.Fprintf(os.Stderr, "FAIL: %s: %v\n", doing, err)
		code = 1
	}
	if err := connect(); err != nil {
		fail("connecting to the cluster", err)
		return code
	}
	begin := time.Now()
	defer func() {
		if err := command("make", "undeploy"); err != nil {
			fail("undeploying the operator", err)
		}
	}()
	if err := deploy(); err != nil {
		fail("deploying the operator", err)
		fmt.Fprintln(os.Stderr, operatorState())
		return code
	}
	fmt.Printf("deployed in %.0f s\n", time.Since(begin).Seconds())

	code = run()

	begin = time.Now()
	if err := removeNamespaces(); err != nil {
		fail("removing the namespaces of the tests", err)
	}
	fmt.Printf("waited %.0f s until the namespaces of the tests were gone\n", time.Since(begin).Seconds())
	if err := checkRights(flag.Lookup("test.run").Value.String() == ""); err != nil {
		fail("the operator's rights are those that it needs", err)
	}
	return code
}

func connect() error {
	ctrl.SetLogger(logr.Discard()) // tests say what matters
	format.UseStringerRepresentation = true
	if os.Getenv("KUBECONFIG") == "" {
		return errors.New("KUBECONFIG is not set; `make e2e` runs these tests on a local cluster")
	}
	if clientImage == "" {
		return errors.New("MEMCACHECLIENT_IMG is not set; `make e2e` sets it")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1.AddToScheme(scheme))
	if testClient, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}

	// Undeploying removes every Memcached in the cluster, so there must be none but what an earlier run left.
	var memcacheds cachev1.MemcachedList
	if err = testClient.List(context.Background(), &memcacheds); err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	for _, mc := range memcacheds.Items {
		var namespace corev1.Namespace
		if err = testClient.Get(context.Background(), client.ObjectKey{Name: mc.Namespace}, &namespace); err != nil {
			return err
		}
		if namespace.Labels[ownLabel] == "" {
			return fmt.Errorf("the cluster has the Memcached %q in namespace %q, and these tests would delete it", mc.Name, mc.Namespace)
		}
	}
	beginning, err = auditPosition()
	return err
}

func deploy() error {
	if err := command("make", "deploy"); err != nil {
		return err
	}
	pullPolicy := corev1.PullIfNotPresent
	if os.Getenv("LOCALCLUSTER_REGISTRY") != "" {
		pullPolicy = corev1.PullAlways // both images were pushed just now, perhaps once more under the same tag
	}
	if err := command("kubectl", "-n", operatorNamespace, "patch", operatorDeployment, "-p", fmt.Sprintf(
		`{"spec": {"template": {"spec": {"containers": [{"name": "manager", "imagePullPolicy": %q, "env": %s}]}}}}`,
		pullPolicy, leaderElection)); err != nil {
		return err
	}
	if err := command("kubectl", "-n", operatorNamespace, "rollout", "status", operatorDeployment, "--timeout=3m"); err != nil {
		return err
	}

	if err := ownersAreKnown(); err != nil {
		return fmt.Errorf("waiting until the API server lets a Memcached own something: %w", err)
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   clientNamespace,
		Labels: map[string]string{ownLabel: "true", "pod-security.kubernetes.io/enforce": "restricted"},
	}}
	// An earlier run that was killed left one.
	if err := testClient.Delete(context.Background(), namespace.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := command("kubectl", "wait", "--for=delete", "namespace/"+clientNamespace, "--timeout=3m"); err != nil {
		return err
	}
	if err := testClient.Create(context.Background(), namespace); err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: clientNamespace}, Spec: clientPodSpec()}
	pod.Spec.Containers[0].ImagePullPolicy = pullPolicy
	pod.Spec.ServiceAccountName = "client" // the account "default" comes a little after its namespace
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: clientNamespace}}
	if err := errors.Join(testClient.Create(context.Background(), account), testClient.Create(context.Background(), pod)); err != nil {
		return err
	}
	return command("kubectl", "-n", clientNamespace, "wait", "--for=condition=Ready", "pod/client", "--timeout=3m")
}

// ownersAreKnown returns when the admission plugin OwnerReferencesPermissionEnforcement, where it is on, knows the new
// kind. It looks for new ones every 30 s, and until then refuses what the operator makes for a Memcached.
func ownersAreKnown() error {
	const owned = `{apiVersion: v1, kind: Service, metadata: {name: probe, ownerReferences: [{apiVersion: cache.example.com/v1,
		kind: Memcached, name: probe, uid: probe, blockOwnerDeletion: true}]}, spec: {clusterIP: None}}`
	return wait.PollUntilContextTimeout(context.Background(), polling, patience, true, func(context.Context) (bool, error) {
		_, err := tryKubectl(owned, "--as="+operatorUser, "-n", operatorNamespace, "create", "-f", "-", "--dry-run=server")
		if err != nil && strings.Contains(err.Error(), "cannot find RESTMapping") {
			return false, nil
		}
		return true, err
	})
}

// clientPodSpec runs memcacheclient, and nothing that it does takes time to end.
func clientPodSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "client", Image: clientImage, Args: []string{"serve"},
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

// removeNamespaces waits for the end of the namespaces that the tests deleted, so that the operator is still there for
// whatever their end makes it do.
func removeNamespaces() error {
	ctx := context.Background()
	if err := testClient.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(clientNamespace), client.GracePeriodSeconds(1)); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		var namespaces corev1.NamespaceList
		if err := testClient.List(ctx, &namespaces, client.HasLabels{ownLabel}); err != nil {
			return false, err
		}
		for i := range namespaces.Items {
			if namespaces.Items[i].DeletionTimestamp.IsZero() {
				if err := testClient.Delete(ctx, &namespaces.Items[i]); client.IgnoreNotFound(err) != nil {
					return false, err
				}
			}
		}
		return len(namespaces.Items) == 0, nil
	})
}

// command runs kubectl, or a target of the Makefile, as part of setting up or tearing down.
func command(name string, args ...string) error {
	if name == "kubectl" {
		_, err := tryKubectl("", args...)
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, append([]string{"--no-print-directory", "-C", filepath.Join("..", "..")}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECTL="+kubectlBinary())
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
	}
	return nil
}

func kubectlBinary() string {
	if binary := os.Getenv("KUBECTL"); binary != "" {
		return binary
	}
	binary, err := filepath.Abs(filepath.Join("..", "..", "bin", "kubectl"))
	utilruntime.Must(err)
	return binary
}

// tryKubectl returns what kubectl printed. The error has what it complained about.
func tryKubectl(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, kubectlBinary(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// kubectl must succeed. It works in the namespace unless that is empty.
func kubectl(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	if namespace != "" {
		args = append([]string{"--namespace", namespace}, args...)
	}
	output, err := tryKubectl("", args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// apply does what a user does with a file.
func apply(t *testing.T, namespace, manifest string) {
	t.Helper()
	if _, err := tryKubectl(manifest, "--namespace", namespace, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// memcached is the manifest of a Memcached, with the spec in YAML.
func memcached(name, spec string) string {
	return fmt.Sprintf("{apiVersion: cache.example.com/v1, kind: Memcached, metadata: {name: %s}, spec: %s}\n---\n", name, spec)
}

// inClient runs a command of memcacheclient in the cluster and returns the lines that it printed.
func inClient(args ...string) ([]string, error) {
	output, err := tryKubectl("", append([]string{"--namespace", clientNamespace, "exec", "client", "--", "/memcacheclient"}, args...)...)
	return strings.FieldsFunc(output, func(r rune) bool { return r == '\n' }), err
}

// newNamespace makes a namespace for one test and deletes it with the test. If the test fails, it tells what was in there.
func newNamespace(t *testing.T, labels ...string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{ownLabel: "true"}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		namespace.Labels[key] = value
	}
	if err := testClient.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("namespace %s at the end of the failed test:\n%s%s", namespace.Name, namespaceState(namespace.Name), operatorState())
		}
		if err := testClient.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting the namespace: %v", err)
		}
	})
	return namespace.Name
}

func namespaceState(namespace string) string {
	return outputs(
		[]string{"-n", namespace, "get", "memcacheds", "-o", "yaml"},
		[]string{"-n", namespace, "get", "all", "-o", "wide"},
		[]string{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
	)
}

func operatorState() string {
	return outputs(
		[]string{"-n", operatorNamespace, "get", "pods,leases", "-o", "wide"},
		[]string{"-n", operatorNamespace, "logs", "--selector=control-plane=controller-manager", "--prefix", "--tail=40"},
	)
}

// outputs are those of several kubectl commands, whatever becomes of them.
func outputs(commands ...[]string) string {
	var all strings.Builder
	for _, args := range commands {
		output, err := tryKubectl("", args...)
		fmt.Fprintf(&all, "$ kubectl %s\n%s\n", strings.Join(args, " "), output)
		if err != nil {
			fmt.Fprintln(&all, err)
		}
	}
	return all.String()
}

// eventually waits until check finds nothing to complain about.
func eventually(t *testing.T, check func(g gomega.Gomega)) {
	t.Helper()
	within(t, patience, check)
}

// within is eventually, where the time that it may take is part of what is tested.
func within(t *testing.T, limit time.Duration, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(limit).WithPolling(polling).Should(gomega.Succeed())
}

// stays fails as soon as check finds something to complain about.
func stays(t *testing.T, duration time.Duration, check func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Consistently(check).WithTimeout(duration).WithPolling(polling).Should(gomega.Succeed())
}

// get reads an object, and complains if it isn't there.
func get[O client.Object](g gomega.Gomega, namespace, name string, obj O) O {
	g.Expect(testClient.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(gomega.Succeed())
	return obj
}

// condition reads a condition of a Memcached, and complains unless it is there and describes the current spec.
func condition(g gomega.Gomega, namespace, name, kind string) metav1.Condition {
	mc := get(g, namespace, name, &cachev1.Memcached{})
	found := meta.FindStatusCondition(mc.Status.Conditions, kind)
	g.Expect(found).NotTo(gomega.BeNil(), "condition %s", kind)
	g.Expect(found.ObservedGeneration).To(gomega.Equal(mc.Generation), "generation that the status describes")
	return *found
}
