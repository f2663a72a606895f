// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example-inc/memcached-operator/internal/resources"
)

// CacheOptions limit the cache to what the reconciler reads: of other people's objects nothing at all, of ours the parts
// that matter. It watches the named namespaces, or all if none is named.
func CacheOptions(namespaces []string) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{resources.ManagedByLabel: resources.ManagedBy})
	// Pods and ReplicaSets are found by the labels that they are selected by: without those they aren't of a Memcached any more.
	selected, err := labels.Parse(resources.AnySelector)
	utilruntime.Must(err) // a constant
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Label: ours, Transform: keepOwnManagedFields},
			&corev1.Service{}:    {Label: ours, Transform: keepOwnManagedFields},
			&appsv1.ReplicaSet{}: {Label: selected},
			&corev1.Pod{}:        {Label: selected, Transform: trimPod},
		},
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = make(map[string]cache.Config, len(namespaces))
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// keepOwnManagedFields keeps what tells which fields are ours, and drops what tells of other managers.
func keepOwnManagedFields(in any) (any, error) {
	if obj, ok := in.(metav1.Object); ok {
		obj.SetManagedFields(slices.DeleteFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager != Name || entry.Operation != metav1.ManagedFieldsOperationApply
		}))
	}
	return in, nil
}

// trimPod keeps of a pod what a status is worked out from.
func trimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	pod.ManagedFields = nil
	pod.Annotations = nil
	pod.Spec = corev1.PodSpec{}
	pod.Status = corev1.PodStatus{
		Phase:             pod.Status.Phase,
		Conditions:        pod.Status.Conditions,
		ContainerStatuses: pod.Status.ContainerStatuses,
	}
	return pod, nil
}

// ownerOf maps a child, or a pod, to its Memcached. It goes by label rather than owner reference, so that an object which
// was in the way also wakes the Memcached when it goes.
func ownerOf(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[resources.OwnerLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// settling lets the events of children gather for a while before their Memcached is looked at, since they come in bursts:
// one rollout is dozens of them, and each could cost a status write.
type settling struct {
	handler.EventHandler
	time time.Duration
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (s settling) Create(ctx context.Context, e event.CreateEvent, q queue) {
	s.EventHandler.Create(ctx, e, delayed{q, s.time})
}

func (s settling) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	s.EventHandler.Update(ctx, e, delayed{q, s.time})
}

func (s settling) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	s.EventHandler.Delete(ctx, e, delayed{q, s.time})
}

// delayed is a queue that takes everything a little later. A request that waits already keeps its time.
type delayed struct {
	queue
	time time.Duration
}

func (d delayed) Add(request reconcile.Request) {
	d.AddAfter(request, d.time)
}
