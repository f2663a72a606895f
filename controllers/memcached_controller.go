// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package controllers keeps the objects that Memcacheds need as they should be, and says how they are.
package controllers

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
	"github.com/example-inc/memcached-operator/internal/resources"
	"github.com/example-inc/memcached-operator/internal/status"
)

// Name is the operator's name wherever it signs: in field ownership, events and its logs. It must never change:
// fields owned under an old name would stay for ever.
const Name = "memcached-operator"

// MemcachedReconciler makes the cluster hold what each Memcached asks for.
type MemcachedReconciler struct {
	// Client reads from the cache, which holds only what CacheOptions says.
	client.Client
	// APIReader reads past the cache, for objects that may not carry our labels.
	APIReader client.Reader
	// Events announces transitions to users.
	Events events.EventRecorder
	// Platform is what the operator runs on.
	Platform platform.Platform
	// Concurrency is the number of Memcacheds that are reconciled at the same time; 0 means 1.
	Concurrency int
	// Settle is how long the events of children gather before their Memcached is looked at.
	Settle time.Duration
}

// In alphabetical order. A server-side apply needs "patch", and "create" when it creates. "memcacheds/finalizers" is asked
// for by OpenShift's OwnerReferencesPermissionEnforcement wherever an owner reference blocks the owner's deletion.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile moves one Memcached towards its spec: fetch, observe, work out what is desired, converge, report.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	mc := &cachev1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !mc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector takes the children along
	}

	observed, err := r.observe(ctx, mc)
	if err != nil {
		return ctrl.Result{}, err // says nothing about mc: try again before reporting
	}
	desired := resources.For(mc, r.Platform, observed.KeptImage)
	convergeErr := r.converge(ctx, mc, &observed, desired)

	if err := r.report(ctx, mc, status.For(mc, r.Platform, observed, convergeErr)); err != nil {
		return ctrl.Result{}, err // a lost status is written again, whatever became of the children
	}
	return outcome(convergeErr)
}

// SetupWithManager registers the reconciler with the manager, whose cache must have been made with CacheOptions.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	children := settling{handler.EnqueueRequestsFromMapFunc(ownerOf), r.Settle}
	return ctrl.NewControllerManagedBy(mgr).
		For(&cachev1.Memcached{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// Our own status writes wake us too: a pass that didn't see the last one yet may have left a wrong one standing.
		Watches(&cachev1.Memcached{}, settling{&handler.EnqueueRequestForObject{}, r.Settle},
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&appsv1.Deployment{}, children).
		Watches(&corev1.Service{}, children).
		WatchesMetadata(&appsv1.ReplicaSet{}, children).
		Watches(&corev1.Pod{}, children).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Concurrency,
			RateLimiter:             retries(),
		}).
		Complete(r)
}

// retries come twice as late each time, but at least every minute, so that the end of an outage is noticed within a minute.
func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, time.Minute)
}
