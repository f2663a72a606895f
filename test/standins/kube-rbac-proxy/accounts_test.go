// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-inc/memcached-operator/test/standins/internal/controlplane"
)

// as is how a ServiceAccount of that name, which it makes, reaches the API server. A role, if any, is its own.
func as(t *testing.T, cluster *controlplane.Cluster, name string, role *rbacv1.ClusterRole) *rest.Config {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	objects := []client.Object{account}
	if role != nil {
		objects = append(objects, role, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: account.Namespace}},
		})
	}
	for _, object := range objects {
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := cluster.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster.Config)
	config.BearerToken = token.Status.Token
	return config
}
