// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/status"
)

// report writes the status if it changed, and then announces what became different. The order matters: an event never
// tells of something that the status doesn't show.
func (r *MemcachedReconciler) report(ctx context.Context, mc *cachev1.Memcached, current cachev1.MemcachedStatus) error {
	before := mc.DeepCopy()
	for i := range current.Conditions {
		conditions := mc.Status.Conditions
		meta.SetStatusCondition(&conditions, current.Conditions[i]) // keeps the time of the last transition
		current.Conditions[i] = *meta.FindStatusCondition(conditions, current.Conditions[i].Type)
	}
	mc.Status = current
	if equality.Semantic.DeepEqual(before.Status, mc.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, mc, client.MergeFrom(before), client.FieldOwner(Name)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status: %w", err)) // NotFound: deleted meanwhile
	}
	r.announce(mc, before.Status.Conditions)
	return nil
}

// noteLimit is how many bytes the API server allows in the note of an event.
const noteLimit = 1024

// announcements say which conditions are worth an event when they turn to a status, and of which type. The cause goes before
// its consequence.
var announcements = []struct {
	condition string
	status    metav1.ConditionStatus
	eventType string
}{
	{cachev1.ConditionDegraded, metav1.ConditionTrue, corev1.EventTypeWarning},
	{cachev1.ConditionReady, metav1.ConditionTrue, corev1.EventTypeNormal},
	{cachev1.ConditionReady, metav1.ConditionFalse, corev1.EventTypeWarning},
	{cachev1.ConditionUpdateAvailable, metav1.ConditionTrue, corev1.EventTypeNormal},
}

// announce emits an event for each condition that turned, but one for a reason. A new Memcached that isn't ready yet is no news.
func (r *MemcachedReconciler) announce(mc *cachev1.Memcached, before []metav1.Condition) {
	announced := sets.New[string]()
	for _, a := range announcements {
		now := meta.FindStatusCondition(mc.Status.Conditions, a.condition)
		then := meta.FindStatusCondition(before, a.condition)
		isNew := then == nil && now.Status == metav1.ConditionFalse
		same := then != nil && then.Status == now.Status && then.Reason == now.Reason
		if now.Status != a.status || isNew || same || announced.Has(now.Reason) {
			continue
		}
		announced.Insert(now.Reason)
		note := fmt.Sprintf("%s is %s: %s", a.condition, now.Status, now.Message)
		// An event is counted as a repetition of another, and that one written again minutes later, if all but the note is
		// the same. So the action is that of the condition.
		r.Events.Eventf(mc, nil, a.eventType, now.Reason, a.condition, "%s", status.Shorten(note, noteLimit))
	}
}
