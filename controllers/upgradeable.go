// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"context"
	"fmt"
	"os"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lib/conditions"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/status"
)

// operatorConditionName is the environment variable by which OLM names the OperatorCondition of an operator that it
// installed.
const operatorConditionName = "OPERATOR_CONDITION_NAME"

// UpgradeableReconciler keeps OLM told whether the operator may be upgraded, in its OperatorCondition. Its work is always the
// same, whichever Memcached it is woken for, so all that happens until it gets to it is one piece of work.
type UpgradeableReconciler struct {
	// Reader reads Memcacheds from the cache.
	client.Reader
	// Settle is how long changes gather before OLM is told.
	Settle time.Duration

	condition conditions.Condition
}

// Reconcile writes the condition if it isn't as it should be. It remembers nothing, so that a new leader, or one that comes
// after a crash, is no special case.
func (r *UpgradeableReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	memcacheds := &cachev1.MemcachedList{}
	if err := r.List(ctx, memcacheds, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Memcacheds: %w", err)
	}
	want := status.Upgradeable(memcacheds.Items)
	// An error says that there is no such condition yet, or comes up again below.
	if now, err := r.condition.Get(ctx); err == nil && now.Status == want.Status && now.Reason == want.Reason && now.Message == want.Message {
		return ctrl.Result{}, nil
	}
	if err := r.condition.Set(ctx, want.Status, conditions.WithReason(want.Reason), conditions.WithMessage(want.Message)); err != nil {
		return ctrl.Result{}, fmt.Errorf("setting the condition %s for OLM: %w", operatorsv2.Upgradeable, err)
	}
	return ctrl.Result{}, nil
}

// SetupWithManager registers the reconciler with the manager, unless the operator wasn't installed by OLM.
func (r *UpgradeableReconciler) SetupWithManager(mgr ctrl.Manager) error {
	name := os.Getenv(operatorConditionName)
	if name == "" {
		return nil
	}
	scheme := runtime.NewScheme()
	if err := operatorsv2.AddToScheme(scheme); err != nil {
		return err
	}
	// Past the cache, which would list and watch: OLM lets us get, update and patch this one object.
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making the client for the OperatorCondition: %w", err)
	}
	r.condition, err = conditions.InClusterFactory{Client: direct}.NewCondition(operatorsv2.ConditionType(operatorsv2.Upgradeable))
	if err != nil {
		return fmt.Errorf("environment variable %s is %q, which is for a pod that OLM made: unset it elsewhere: %w", operatorConditionName, name, err)
	}

	holding := predicate.NewPredicateFuncs(func(obj client.Object) bool { return status.HoldsUpgrade(obj.(*cachev1.Memcached)) })
	holding.UpdateFunc = func(e event.UpdateEvent) bool {
		return status.HoldsUpgrade(e.ObjectOld.(*cachev1.Memcached)) != status.HoldsUpgrade(e.ObjectNew.(*cachev1.Memcached))
	}
	work := reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{work}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("operatorcondition").
		Watches(&cachev1.Memcached{}, settling{enqueue, r.Settle}, builder.WithPredicates(holding)).
		// Once at the start: what an earlier leader wrote may no longer be so, and no Memcached need be left to wake us.
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			q.Add(work)
			return nil
		})).
		WithOptions(controller.Options{RateLimiter: retries()}).
		Complete(r)
}
