// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package platform knows what the operator runs on: the kind of cluster, and what the operator itself was configured with.
package platform

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// Platform is asked for once, at start, and stays the same for the life of the process.
type Platform struct {
	// OpenShift is true where security context constraints choose the user that a pod runs as.
	OpenShift bool
	// DefaultImage is the memcached image for resources that don't name one.
	DefaultImage string
}

// securityGroup is served by every OpenShift cluster and holds SecurityContextConstraints.
const securityGroup = "security.openshift.io"

// Detect asks the API server what it serves. An error means that the answer is not known:
// to guess "plain Kubernetes" would change the security context of every pod and so replace them all.
func Detect(client discovery.ServerGroupsInterface, mapper meta.RESTMapper, defaultImage string) (Platform, error) {
	groups, err := client.ServerGroups()
	if err != nil {
		return Platform{}, fmt.Errorf("asking the API server for its API groups: %w", err)
	}

	kind := schema.GroupKind{Group: cachev1.GroupVersion.Group, Kind: "Memcached"}
	if _, err := mapper.RESTMapping(kind, cachev1.GroupVersion.Version); meta.IsNoMatchError(err) {
		return Platform{}, fmt.Errorf("the API server does not know the kind Memcached of %s: "+
			"install the CustomResourceDefinition memcacheds.cache.example.com first (make install): %w", cachev1.GroupVersion, err)
	} else if err != nil {
		return Platform{}, fmt.Errorf("asking the API server for the kind Memcached: %w", err)
	}

	platform := Platform{DefaultImage: defaultImage}
	for _, group := range groups.Groups {
		if group.Name == securityGroup {
			platform.OpenShift = true
		}
	}
	return platform, nil
}
