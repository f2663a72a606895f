// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImagePolicy says which image runs while spec.image is unset.
//
// +kubebuilder:validation:Enum=Keep;Follow
type ImagePolicy string

const (
	// ImagePolicyKeep keeps the image that runs when the operator's default changes.
	ImagePolicyKeep ImagePolicy = "Keep"
	// ImagePolicyFollow always runs the operator's default image.
	ImagePolicyFollow ImagePolicy = "Follow"
)

// MemcachedSpec is what a user asks for.
type MemcachedSpec struct {
	// size is the number of memcached pods, 0 or more.
	// A change adds or removes pods; the others keep running and keep their contents.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`

	// image is the memcached image to run, such as docker.io/library/memcached:1.6.45.
	// Default: the operator's own choice, see imagePolicy.
	// A change replaces all pods, one at a time, and so empties the caches. To remove it replaces none while imagePolicy is
	// Keep: what runs is kept.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\S+$')",message="image must be an image reference without white space; leave image out to run the operator's default image"
	Image string `json:"image,omitempty"`

	// imagePolicy decides what runs while image is unset.
	// Keep (the default) keeps the image that runs, and a new resource gets the operator's default: an operator upgrade
	// restarts no pod, and the condition UpdateAvailable says when the default is another one by now.
	// Follow always runs the operator's default image: an operator upgrade may replace all pods, one at a time.
	// Changing Keep to Follow moves to the operator's default image at once.
	//
	// +optional
	// +kubebuilder:default=Keep
	ImagePolicy ImagePolicy `json:"imagePolicy,omitempty"`

	// imagePullSecrets name Secrets, in the namespace of this resource, with credentials for the image's registry.
	// Default: none. A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:XValidation:rule="size(self.name) > 0",message="an image pull secret needs the name of a Secret in this namespace"
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// MemcachedStatus is what the operator saw last.
type MemcachedStatus struct {
	// nodes are the names of the memcached pods, sorted; [] when there are none.
	// A pod that is terminating, has failed or has succeeded is not among them.
	//
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes"`

	// replicas is the number of memcached pods, ready or not.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of memcached pods that accept connections.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the pods in text form, as autoscalers read it from the scale subresource.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// endpoint is the host and port under which clients find all pods: a DNS name with one address for each ready pod.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// image is the memcached image that the Deployment runs.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Why the rule of the conditions: the format date-time allows what no Go program can read, such as a "t" for the "T", or a
	// list, and one such value would stop the watch of all Memcacheds. To compare the time makes the API server read it as Go
	// does. The bounds keep out what Go would write back as null, or with a year of five digits.

	// conditions are Ready, Progressing, Degraded and UpdateAvailable; docs/conditions.md lists their reasons.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:items:XValidation:rule="self.lastTransitionTime > timestamp('0001-01-01T00:00:00Z') && self.lastTransitionTime < timestamp('9999-12-31T23:59:59Z')",message="lastTransitionTime must be a time such as 2006-01-02T15:04:05Z, with an upper-case T and Z, of the years 1 to 9999"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached is a set of memcached caches: a Deployment of memcached pods and a headless Service, both of the same name,
// under which clients find every pod.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=mc,categories=all
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=".spec.size",description="Number of pods asked for"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyReplicas",description="Number of pods that accept connections"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be 1 to 63 lower-case letters, digits and '-', begin with a letter and not end with '-' (a DNS-1035 label): it becomes the name of a Service and a label value"
type Memcached struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked for.
	//
	// +required
	Spec MemcachedSpec `json:"spec"`

	// status is what the operator saw last; only the operator writes it.
	//
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcacheds.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Memcached `json:"items"`
}
