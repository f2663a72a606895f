// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
//
// +kubebuilder:validation:XValidation:rule=`!(size(string(self.maxItemSize)) <= 32 && !string(self.maxItemSize).contains('e') && !string(self.maxItemSize).contains('E') && size(string(self.memory)) <= 32 && !string(self.memory).contains('e') && !string(self.memory).contains('E')) || !quantity(string(self.maxItemSize)).add(quantity(string(self.maxItemSize))).isGreaterThan(quantity(string(self.memory)))`,fieldPath=`.maxItemSize`,message="maxItemSize must be at most half of memory",messageExpression=`'maxItemSize is ' + string(self.maxItemSize) + ', more than half of memory, which is ' + string(self.memory) + ': memcached would not start. Raise memory or lower maxItemSize'`
// +kubebuilder:validation:XValidation:rule=`self.maxConnections >= 16 + 8 * self.threads`,fieldPath=`.maxConnections`,message="maxConnections must be at least 16 + 8 × threads, which is 24 for 1 thread, 48 for 4 and 528 for 64: memcached limits its open files to maxConnections, and takes several for each thread"
// +kubebuilder:validation:XValidation:rule=`!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || !(size(string(self.memory)) <= 32 && !string(self.memory).contains('e') && !string(self.memory).contains('E') && size(string(self.resources.limits['memory'])) <= 32 && !string(self.resources.limits['memory']).contains('e') && !string(self.resources.limits['memory']).contains('E')) || [int(quantity(string(self.memory)).asApproximateFloat())].all(memory, quantity(string(self.resources.limits['memory'])).sub(memory + (memory > 268435456 ? memory / 4 : 67108864) + (self.maxConnections > 1024 ? 16384 * (self.maxConnections - 1024) : 0)).compareTo(quantity('0')) >= 0)`,fieldPath=`.resources`,message="resources.limits.memory is too low for memory",messageExpression=`'resources.limits.memory is ' + string(self.resources.limits['memory']) + ', too low for memory, which is ' + string(self.memory) + ': it must be at least memory + the larger of 64Mi and memory/4 + 16Ki for each of maxConnections above 1024. Raise the limit, lower memory, or leave the limit out'`
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

	// Why the rules on quantities are as they are. Exponents are refused before anything reads the quantity: 1e999999999
	// takes more than half a minute, in the API server and in the operator. And isInteger is false of 0.5Gi, which has a fraction: so the
	// approximate number is rounded to what it should be, and that is compared exactly.

	// memory is what one pod may use for cached items, in whole MiB from 8Mi to 1Ti; memcached's -m. Default: 64Mi.
	// What memcached needs beside them is added to the pod's memory request and limit, see resources.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +kubebuilder:default="64Mi"
	// +kubebuilder:validation:XValidation:rule=`size(string(self)) <= 32 && !string(self).contains('e') && !string(self).contains('E') && isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('8Mi')) && !quantity(string(self)).isGreaterThan(quantity('1Ti')) && quantity(string(self)).sub(1048576 * int(quantity(string(self)).asApproximateFloat() / 1048576.0 + 0.5)).compareTo(quantity('0')) == 0`,message="memory must be whole MiB, from 8Mi to 1Ti",messageExpression=`'memory is ' + string(self) + ', and must be whole MiB from 8Mi to 1Ti, such as 64Mi or 0.5Gi; M and G are powers of 1000'`
	Memory resource.Quantity `json:"memory,omitzero"`

	// maxConnections is how many connections one pod takes at the same time, up to 65536; memcached's -c. Default: 1024.
	// At least 16 + 8 × threads, since memcached limits its open files to this number. Above 1024, 16Ki for each connection
	// are added to the pod's memory request and limit, see resources. The container runtime must allow as many open files.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxConnections int32 `json:"maxConnections,omitempty"`

	// threads is the number of threads of one pod that serve clients, 1 to 64; memcached's -t. Default: 4.
	// More than the CPUs that a pod can use gain nothing.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Threads int32 `json:"threads,omitempty"`

	// maxItemSize is the size of the largest item, a multiple of 512Ki from 512Ki to 1Gi; memcached's -I. Default: 1Mi.
	// At most half of memory.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +kubebuilder:default="1Mi"
	// +kubebuilder:validation:XValidation:rule=`size(string(self)) <= 32 && !string(self).contains('e') && !string(self).contains('E') && isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('512Ki')) && !quantity(string(self)).isGreaterThan(quantity('1Gi')) && quantity(string(self)).sub(524288 * int(quantity(string(self)).asApproximateFloat() / 524288.0 + 0.5)).compareTo(quantity('0')) == 0`,message="maxItemSize must be a multiple of 512Ki, from 512Ki to 1Gi",messageExpression=`'maxItemSize is ' + string(self) + ', and must be a multiple of 512Ki from 512Ki to 1Gi, such as 512Ki or 4Mi: memcached stores large items in pieces of 512Ki'`
	MaxItemSize resource.Quantity `json:"maxItemSize,omitzero"`

	// extraArgs are further flags of memcached, with flag and value as separate items, such as ["-M", "-o", "idle_timeout=60"].
	// Allowed are -M, -C, -F, -X and -W; -b, -R and -n with a number; -f with a factor; -B with ascii or auto; and -o with
	// options, separated by commas, of which idle_timeout, temporary_ttl, lru_crawler_sleep, slab_automove, hot_lru_pct,
	// warm_lru_pct and hash_algorithm are allowed. Default: none.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^[!-~]+$')`,message="flag and value are separate items, neither empty nor with white space"
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^([^-].*|-[MCFXWbRnfBo]|-[-mctIplUsavhiVdPurkLeSYZNAD].*|)$|[^!-~]')`,message="extraArgs takes the flags -M, -C, -F, -X and -W and, each with its value as the next item, -b, -R, -n, -f, -B and -o"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^-[-]')`,message="extraArgs takes flags in their short form, such as -M"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^-[mctI]')`,message="-m, -c, -t and -I are what spec.memory, spec.maxConnections, spec.threads and spec.maxItemSize are for"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^-[plUsav]')`,message="the operator chooses where memcached listens (-p, -l, -U, -s, -a) and what it logs (-v)"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^-[hiVdP]')`,message="with -h, -i, -V and -d memcached ends, or goes to the background, which ends the container; -P is for the latter"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^-[urkL]')`,message="the container may not change its user (-u), write core files (-r), lock memory (-k) or use large pages (-L)"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^-[eSYZN]')`,message="-e, -S, -Y, -Z and -N need a file or a device that the container doesn't have"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^-[AD]')`,message="-A lets every client stop the cache, and -D lets every client fill memory that has no bound"
	// +kubebuilder:validation:XValidation:rule=`self.exists(arg, arg.matches('^-([^MCFXWbRnfBo]|..|$)|[^!-~]')) || self.join(' ').matches('^((-[MCFXW]|-[bRnfBo] [^ -][^ ]*)( |$))*$')`,message="extraArgs has a flag without its value, or a value without its flag",messageExpression=`'extraArgs "' + self.join(' ') + '" has a flag without its value, or a value without its flag: -b, -R, -n, -f, -B and -o take one as the next item, the other flags none'`
	// +kubebuilder:validation:XValidation:rule=`(self.join(' ') + ' ').findAll('-[bRnfBo] [^ -][^ ]* ').all(pair, pair.matches('^-([bR] [1-9][0-9]{0,4} |n [1-9][0-9]{0,3} |f (1[.](0[5-9]|[1-9][0-9]?)|[2-4]([.][0-9]{1,2})?) |B (ascii|auto) |o ((idle_timeout=[0-9]{1,5}|temporary_ttl=[1-9][0-9]{0,4}|lru_crawler_sleep=[0-9]{1,6}|slab_automove=[012]|(hot|warm)_lru_pct=([1-9]|[123][0-9]|40)|hash_algorithm=(jenkins|murmur3))[, ])+)$'))`,message="extraArgs: -b and -R take 1 to 99999; -n 1 to 9999; -f 1.05 to 4.99, with at most two decimals; -B ascii or auto; -o idle_timeout=0 to 99999, temporary_ttl=1 to 99999, lru_crawler_sleep=0 to 999999, slab_automove=0 to 2, hot_lru_pct and warm_lru_pct=1 to 40, hash_algorithm=jenkins or murmur3",messageExpression=`'extraArgs is "' + self.join(' ') + '", of which a value is not allowed: -b and -R take 1 to 99999; -n 1 to 9999; -f 1.05 to 4.99, with at most two decimals; -B ascii or auto; -o idle_timeout=0 to 99999, temporary_ttl=1 to 99999, lru_crawler_sleep=0 to 999999, slab_automove=0 to 2, hot_lru_pct and warm_lru_pct=1 to 40, hash_algorithm=jenkins or murmur3'`
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// resources are what one pod requests and may use at most, where that is to differ from what follows from other fields.
	// Default: memory, request and limit, of memory + the larger of 96Mi and memory/4 + 16Ki for each of maxConnections above
	// 1024; cpu, a request of 50m and no limit.
	// A memory limit must leave the larger of 64Mi and memory/4, and those 16Ki, beside memory. Without a request of its own,
	// it is the request too.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	Resources Resources `json:"resources,omitzero"`

	// nodeSelector are labels that a node must have to run a pod. Default: none.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let pods run on nodes with taints. Default: none.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity says which nodes, and which neighbours on them, the pods must or should have. Default: none.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`[self.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([]).size(), self.?nodeAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).size(), self.?podAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]).size(), self.?podAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).size(), self.?podAntiAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]).size(), self.?podAntiAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).size()].all(terms, terms <= 64)`,message="affinity has a list of more than 64 terms; take the others out"
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints say how the pods are spread over zones, hosts or other groups of nodes.
	// Default: over zones and over hosts, evenly where there is room. Constraints of your own take the place of both. One
	// without a labelSelector counts the pods of this resource.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the PriorityClass of the pods. Default: the cluster's default.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// podLabels are added to the labels of the pods; they can't replace the operator's own. Default: none.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule=`['app', 'memcached_cr', 'pod-template-hash', 'app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/component', 'app.kubernetes.io/managed-by'].all(own, !(own in self))`,message="podLabels may not set app, memcached_cr, pod-template-hash, or name, instance, component and managed-by of app.kubernetes.io, by which Kubernetes and the operator know the pods: take it out"
	// +kubebuilder:validation:XValidation:rule=`self.all(key, !key.startsWith('cache.example.com/'))`,message="podLabels may not set labels of cache.example.com: they are the operator's own"
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// podAnnotations are added to the annotations of the pods. Default: none.
	// A change replaces all pods, one at a time, and so empties the caches.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule=`self.all(key, !key.startsWith('cache.example.com/'))`,message="podAnnotations may not set annotations of cache.example.com: they are the operator's own"
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// minReadySeconds is for how many seconds a new pod must have served before the next old one goes, 0 to 3600; the pace of
	// a change that replaces all pods. Default: 10. A rollout that makes no progress for minReadySeconds + 300 seconds, and
	// no less than 600, is reported as failing.
	// A change replaces no pod.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// Resources are what one pod requests of a node, and what it may use at most.
type Resources struct {
	// limits are what one pod may use at most, by the name of the resource, such as memory.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule=`self.all(name, [string(self[name])].all(text, size(text) <= 32 && !text.contains('e') && !text.contains('E') && isQuantity(text)))`,message="limits must be quantities without an exponent, such as 256Mi or 0.5"
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// requests are what a node must have free for one pod, by the name of the resource, such as cpu.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule=`self.all(name, [string(self[name])].all(text, size(text) <= 32 && !text.contains('e') && !text.contains('E') && isQuantity(text)))`,message="requests must be quantities without an exponent, such as 256Mi or 0.5"
	Requests corev1.ResourceList `json:"requests,omitempty"`
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
