// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// What the operator asked of the API server stands in the API server's audit log, which the local cluster has.

// operatorAccount is the name of the operator's ServiceAccount, and operatorUser what it is called as a user.
const (
	operatorAccount = "memcached-operator-controller-manager"
	operatorUser    = "system:serviceaccount:" + operatorNamespace + ":" + operatorAccount
)

// request is what is read of an audit event.
type request struct {
	Stage      string
	RequestURI string
	Verb       string
	User       struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct {
		Code int
	}
	RequestReceivedTimestamp time.Time
	Annotations              map[string]string
}

// right is the verb and the resource of a request, such as "patch memcacheds/status.cache.example.com".
func (r request) right() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return right(r.Verb, resource, r.ObjectRef.APIGroup)
}

func right(verb, resource, group string) string {
	return strings.TrimSuffix(verb+" "+resource+"."+group, ".")
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s/%s by %s: %d", r.RequestReceivedTimestamp.Format("15:04:05.000"), r.right(),
		r.ObjectRef.Namespace, r.ObjectRef.Name, r.pod(), r.ResponseStatus.Code)
}

// pod is the name of the pod that sent the request.
func (r request) pod() string {
	return strings.Join(r.User.Extra["authentication.kubernetes.io/pod-name"], ",")
}

// forLeadership: the Lease and the event "became leader" are about the operator itself and not about any Memcached.
func (r request) forLeadership() bool {
	return r.ObjectRef.Namespace == operatorNamespace &&
		(r.ObjectRef.Resource == "leases" || r.ObjectRef.Resource == "events" && r.ObjectRef.APIGroup == "")
}

// isWrite, effective or not.
func (r request) isWrite() bool {
	return r.Stage == "ResponseComplete" && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

var errNoAuditLog = errors.New("this cluster's audit log is not to be had (LOCALCLUSTER_AUDIT_LOG is not set)")

// auditPosition is the end of the audit log as it is now.
func auditPosition() (int64, error) {
	path := os.Getenv("LOCALCLUSTER_AUDIT_LOG")
	if path == "" && os.Getenv("CI") != "" {
		return 0, fmt.Errorf("%w, and in CI nothing is left out", errNoAuditLog)
	}
	if path == "" {
		return 0, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// requestsSince are the operator's requests in the audit log from the position on, in the order in which they ended.
func requestsSince(position int64) (requests []request, err error) {
	path := os.Getenv("LOCALCLUSTER_AUDIT_LOG")
	if path == "" {
		return nil, errNoAuditLog
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(position, io.SeekStart); err != nil {
		return nil, err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil // what is left is a line that isn't finished
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(line, []byte(operatorUser)) {
			continue
		}
		var event request
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w: %s", err, line)
		}
		if event.User.Username == operatorUser {
			requests = append(requests, event)
		}
	}
}

// writesSince are those of the operator's requests that write, except what leader election does.
func writesSince(t *testing.T, position int64) []request {
	t.Helper()
	requests, err := requestsSince(position)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(requests, func(r request) bool { return !r.isWrite() || r.forLeadership() })
}

// needsAuditLog ends a test of which nothing is left without the audit log. That never happens in CI: connect refuses to start.
func needsAuditLog(t *testing.T) int64 {
	t.Helper()
	if os.Getenv("LOCALCLUSTER_AUDIT_LOG") == "" {
		t.Skip(errNoAuditLog)
	}
	position, err := auditPosition()
	if err != nil {
		t.Fatal(err)
	}
	return position
}

// unseen are the rights that no audit event shows, or that no test can be sure to need, each with its reason.
var unseen = map[string]string{
	"update memcacheds/finalizers.cache.example.com": "the admission plugin OwnerReferencesPermissionEnforcement asks for it when " +
		"a child is created whose owner reference blocks the owner's deletion; that is no request",
	"patch events.events.k8s.io": "client-go patches an event when the same one happens again within minutes and for the same version of the object",
}

// checkRights holds the roles that are bound to the operator against what it asked for while the tests ran: nothing that
// it asked for was denied, and, if all tests ran, nothing that it may do was never done.
func checkRights(allTestsRan bool) error {
	requests, err := requestsSince(beginning)
	if errors.Is(err, errNoAuditLog) {
		fmt.Printf("left out: whether the operator's rights are those that it needs: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	used := map[string]int{}
	for _, r := range requests {
		if r.Annotations["authorization.k8s.io/decision"] == "forbid" {
			errs = append(errs, fmt.Errorf("denied: %s", r))
		}
		used[r.right()]++
		switch {
		case r.Verb == "patch" && r.ResponseStatus.Code == http.StatusCreated:
			r.Verb = "create" // an apply that creates needs both, and is one request
			used[r.right()]++
		case r.Verb == "watch" && strings.Contains(r.RequestURI, "sendInitialEvents=true"):
			r.Verb = "list" // what it stands for; client-go lists where the API server can't do it, as that of 1.31
			used[r.right()]++
		}
	}
	granted, err := rightsOfOperator()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if allTestsRan {
		for _, each := range granted {
			if used[each] == 0 && unseen[each] == "" {
				errs = append(errs, fmt.Errorf("granted and never used: %s", each))
			}
		}
	}
	if len(errs) == 0 {
		fmt.Printf("of the operator's %d requests none was denied; its rights, and how often each was used:\n", len(requests))
		for _, each := range granted {
			fmt.Printf("  %-50s %d\n", each, used[each])
		}
	}
	return errors.Join(errs...)
}

// rightsOfOperator are those of the roles that are bound to its ServiceAccount.
func rightsOfOperator() ([]string, error) {
	ctx := context.Background()
	isOperator := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Name == operatorAccount && subject.Namespace == operatorNamespace
	}
	var rules []rbacv1.PolicyRule
	var clusterBindings rbacv1.ClusterRoleBindingList
	if err := framework.Client.List(ctx, &clusterBindings); err != nil {
		return nil, err
	}
	for _, binding := range clusterBindings.Items {
		if slices.ContainsFunc(binding.Subjects, isOperator) {
			var role rbacv1.ClusterRole
			if err := framework.Client.Get(ctx, client.ObjectKey{Name: binding.RoleRef.Name}, &role); err != nil {
				return nil, err
			}
			rules = append(rules, role.Rules...)
		}
	}
	var bindings rbacv1.RoleBindingList
	if err := framework.Client.List(ctx, &bindings); err != nil {
		return nil, err
	}
	for _, binding := range bindings.Items {
		if slices.ContainsFunc(binding.Subjects, isOperator) {
			var role rbacv1.Role
			if err := framework.Client.Get(ctx, client.ObjectKey{Namespace: binding.Namespace, Name: binding.RoleRef.Name}, &role); err != nil {
				return nil, err
			}
			rules = append(rules, role.Rules...)
		}
	}

	rights := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[right(verb, resource, group)] = true
				}
			}
		}
	}
	if len(rights) == 0 {
		return nil, fmt.Errorf("no role is bound to %s", operatorUser)
	}
	return slices.Sorted(maps.Keys(rights)), nil
}
