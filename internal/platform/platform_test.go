// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package platform

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// server answers for an API server that serves these groups.
type server struct {
	groups []string
	err    error
}

func (s server) ServerGroups() (*metav1.APIGroupList, error) {
	list := &metav1.APIGroupList{}
	for _, name := range s.groups {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name})
	}
	return list, s.err
}

func TestDetect(t *testing.T) {
	withCRD := meta.NewDefaultRESTMapper(nil)
	withCRD.Add(cachev1.GroupVersion.WithKind("Memcached"), meta.RESTScopeNamespace)
	withoutCRD := meta.NewDefaultRESTMapper([]schema.GroupVersion{cachev1.GroupVersion})

	tests := map[string]struct {
		server  server
		mapper  meta.RESTMapper
		want    Platform
		wantErr []string
	}{
		"plain Kubernetes": {server: server{groups: []string{"apps", "batch"}}, mapper: withCRD, want: Platform{DefaultImage: "memcached:1"}},
		"OpenShift":        {server: server{groups: []string{"apps", "security.openshift.io"}}, mapper: withCRD, want: Platform{OpenShift: true, DefaultImage: "memcached:1"}},
		"an API server that doesn't answer is not plain Kubernetes": {
			server: server{err: errors.New("timed out")}, mapper: withCRD, wantErr: []string{"API groups", "timed out"},
		},
		"a missing CRD is named, with the remedy": {
			server: server{}, mapper: withoutCRD, wantErr: []string{"memcacheds.cache.example.com", "make install"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Detect(test.server, test.mapper, "memcached:1")
			if got != test.want {
				t.Errorf("platform is %+v, want %+v", got, test.want)
			}
			if (err != nil) != (test.wantErr != nil) {
				t.Fatalf("error is %v", err)
			}
			for _, part := range test.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}
