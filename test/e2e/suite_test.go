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
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

const (
	// defaultImage is what the deployed operator runs, from config/images/images.env; otherImage differs from it.
	defaultImage = "docker.io/library/memcached:1.6.45"
	otherImage   = "docker.io/library/memcached:1.6.44"

	operatorNamespace  = "memcached-operator-system"
	operatorDeployment = "deployment/memcached-operator-controller-manager"
)

// leaderElection replaces a killed leader after 15 s, and still forgives a busy machine that is slow for 8 s.
const leaderElection = `[
	{"name": "LEADER_ELECTION_LEASE_DURATION", "value": "15s"},
	{"name": "LEADER_ELECTION_RENEW_DEADLINE", "value": "8s"},
	{"name": "LEADER_ELECTION_RETRY_PERIOD", "value": "2s"}
]`

// beginning is where this run begins in the audit log.
var beginning int64

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
	if err := framework.Connect(); err != nil {
		fail("connecting to the cluster", err)
		return code
	}
	var err error
	if beginning, err = auditPosition(); err != nil {
		fail("finding the audit log", err)
		return code
	}
	begin := time.Now()
	defer func() {
		if err := framework.Make("undeploy"); err != nil {
			fail("undeploying the operator", err)
		}
	}()
	if err := deploy(); err != nil {
		fail("deploying the operator", err)
		fmt.Fprintln(os.Stderr, framework.OperatorState())
		return code
	}
	fmt.Printf("deployed in %.0f s\n", time.Since(begin).Seconds())

	code = run()

	begin = time.Now()
	if err := framework.RemoveNamespaces(); err != nil {
		fail("removing the namespaces of the tests", err)
	}
	fmt.Printf("waited %.0f s until the namespaces of the tests were gone\n", time.Since(begin).Seconds())
	if err := checkRights(flag.Lookup("test.run").Value.String() == ""); err != nil {
		fail("the operator's rights are those that it needs", err)
	}
	return code
}

func deploy() error {
	if err := framework.Make("deploy"); err != nil {
		return err
	}
	if _, err := framework.TryKubectl("", "-n", operatorNamespace, "patch", operatorDeployment, "-p", fmt.Sprintf(
		`{"spec": {"template": {"spec": {"containers": [{"name": "manager", "imagePullPolicy": %q, "env": %s}]}}}}`,
		framework.PullPolicy(), leaderElection)); err != nil {
		return err
	}
	if _, err := framework.TryKubectl("", "-n", operatorNamespace, "rollout", "status", operatorDeployment, "--timeout=3m"); err != nil {
		return err
	}
	if err := ownersAreKnown(); err != nil {
		return fmt.Errorf("waiting until the API server lets a Memcached own something: %w", err)
	}
	return framework.StartClient()
}

// ownersAreKnown returns when the admission plugin OwnerReferencesPermissionEnforcement, where it is on, knows the new
// kind. It looks for new ones every 30 s, and until then refuses what the operator makes for a Memcached.
func ownersAreKnown() error {
	const owned = `{apiVersion: v1, kind: Service, metadata: {name: probe, ownerReferences: [{apiVersion: cache.example.com/v1,
		kind: Memcached, name: probe, uid: probe, blockOwnerDeletion: true}]}, spec: {clusterIP: None}}`
	return wait.PollUntilContextTimeout(context.Background(), framework.Polling, framework.Patience, true, func(context.Context) (bool, error) {
		_, err := framework.TryKubectl(owned, "--as="+operatorUser, "-n", operatorNamespace, "create", "-f", "-", "--dry-run=server")
		if err != nil && strings.Contains(err.Error(), "cannot find RESTMapping") {
			return false, nil
		}
		return true, err
	})
}
