// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/csaupgrade"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/resources"
	"github.com/example-inc/memcached-operator/internal/status"
)

// conflictRetry is how often an object that is in the way is looked at again. No watch tells when it goes, since the
// cache doesn't see what lacks our labels.
const conflictRetry = 30 * time.Second

// converge makes mc's children as desired, and notes what that changed of those that were observed.
func (r *MemcachedReconciler) converge(ctx context.Context, mc *cachev1.Memcached, observed *status.Observed, desired resources.Set) error {
	// All of them before the first write, so that a conflict on one leaves nothing half-made.
	conflict := errors.Join(
		claim(mc, "Deployment", observed.Deployment),
		claim(mc, "Service", observed.Service),
	)
	if conflict != nil {
		return conflict
	}

	err := errors.Join(
		apply(ctx, r, observed.Service, desired.Service, corev1ac.ExtractService),
		apply(ctx, r, observed.Deployment, desired.Deployment, appsv1ac.ExtractDeployment),
	)
	observed.Changed = changed(observed.Service, desired.Service.ResourceVersion) ||
		changed(observed.Deployment, desired.Deployment.ResourceVersion)
	observed.Redeployed = observed.Deployment != nil && desired.Deployment.Generation != nil &&
		observed.Deployment.Generation != *desired.Deployment.Generation
	return err
}

// object is a pointer to an API type, nil where there is no such object.
type object interface {
	comparable
	client.Object
}

// claim refuses an object that isn't mc's own: it is never adopted, changed or deleted.
func claim[O object](mc *cachev1.Memcached, kind string, live O) error {
	var none O
	if live == none || metav1.IsControlledBy(live, mc) {
		return nil
	}
	return &status.NameConflictError{Kind: kind, Name: live.GetName(), Owner: metav1.GetControllerOf(live)}
}

// changed tells whether the answer to an apply, nil if none was sent, is another version of the object than the live one.
// It may be the same: where an admission policy rewrites a field of ours, an apply changes nothing, however often it is sent.
func changed[O object](live O, answer *string) bool {
	var none O
	return answer != nil && (live == none || live.GetResourceVersion() != *answer)
}

// applyConfiguration is what client-go's generated apply configurations have in common.
type applyConfiguration[C any] interface {
	runtime.ApplyConfiguration
	GetKind() *string
	GetName() *string
	WithUID(uid types.UID) C
}

// apply makes the live object as desired, and writes the API server's answer into desired. It sends nothing if the fields
// that we own, which extract reads from the managed fields, are exactly the desired ones: none missing, none edited, none
// too many.
func apply[O object, C applyConfiguration[C]](ctx context.Context, r *MemcachedReconciler,
	live O, desired C, extract func(O, string) (C, error),
) error {
	var none O
	kind, name := *desired.GetKind(), *desired.GetName()
	var err error
	if live == none {
		// Not forced: who came in between with other values is met as a conflict.
		err = r.Apply(ctx, desired, client.FieldOwner(Name))
	} else {
		owned, illegible := extract(live, Name)
		if illegible == nil && equality.Semantic.DeepEqual(owned, desired) {
			return nil
		}
		desired.WithUID(live.GetUID()) // refused for an object that took the place of this one
		if illegible == nil {
			err = r.Apply(ctx, desired, client.FieldOwner(Name), client.ForceOwnership)
		}
		if illegible != nil || fieldsRefused(err) {
			err = r.overrule(ctx, live.DeepCopyObject().(O), desired)
		}
	}

	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // mc goes with its namespace
	case uidRefused(err):
		err = apierrors.NewConflict(schema.GroupResource{Resource: kind}, name, err) // a new look will tell
	}
	if err != nil {
		return fmt.Errorf("applying %s %q: %w", kind, name, err)
	}
	log.FromContext(ctx).Info("Applied", "kind", kind)
	return nil
}

// uidRefused tells whether the object has another UID than the one that an apply was meant for.
func uidRefused(err error) bool {
	return slices.ContainsFunc(causes(err), func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

// fieldsRefused tells whether the API server finds fields of the object invalid; it is not enough that an admission
// policy refuses the object as a whole.
func fieldsRefused(err error) bool {
	return !uidRefused(err) && slices.ContainsFunc(causes(err), func(cause metav1.StatusCause) bool { return cause.Field != "" })
}

// causes are those of the API server's verdict that an object is invalid.
func causes(err error) []metav1.StatusCause {
	refusal, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || refusal.ErrStatus.Details == nil {
		return nil
	}
	return refusal.ErrStatus.Details.Causes
}

// overrule makes the live object's spec exactly the desired one. An apply leaves alone what others added, and is refused if
// that doesn't go with ours, such as a second port of the same name after someone edited the number of the first. And what
// others added may be illegible: a list that has the same key twice tells nobody which entry is whose.
func (r *MemcachedReconciler) overrule(ctx context.Context, live client.Object, desired runtime.ApplyConfiguration) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return err
	}
	replacement, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": live.GetUID()},
		{"op": "replace", "path": "/spec", "value": fields["spec"]},
	})
	if err != nil {
		return err
	}
	err = r.Patch(ctx, live, client.RawPatch(types.JSONPatchType, replacement), client.FieldOwner(Name))
	if err != nil {
		return err
	}
	// What was replaced is owned by an update now, which would hold on to fields that a later apply leaves out.
	handover, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(Name), Name)
	if err != nil || handover == nil {
		return err
	}
	return r.Patch(ctx, live, client.RawPatch(types.JSONPatchType, handover), client.FieldOwner(Name))
}

// outcome is how a pass ends, given what converging ended with.
func outcome(convergeErr error) (ctrl.Result, error) {
	if _, conflict := errors.AsType[*status.NameConflictError](convergeErr); conflict {
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	// Tried again, even what the API server finds invalid: an admission policy that says so may be lifted.
	return ctrl.Result{}, convergeErr
}
