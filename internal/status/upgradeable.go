// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// reasonNoRollout is that of Upgradeable when it is True.
const reasonNoRollout = "NoRollout"

// namesLimit is how many Memcacheds a message names.
const namesLimit = 3

// HoldsUpgrade tells whether an upgrade of the operator should wait for mc: as long as its rollout makes progress by
// itself. A rollout that needs a person may take for ever, and what it needs may be the upgrade.
func HoldsUpgrade(mc *cachev1.Memcached) bool {
	progressing := meta.FindStatusCondition(mc.Status.Conditions, cachev1.ConditionProgressing)
	return progressing != nil && progressing.Status == metav1.ConditionTrue && progressing.Reason == cachev1.ReasonRollingOut &&
		!meta.IsStatusConditionTrue(mc.Status.Conditions, cachev1.ConditionDegraded) &&
		mc.DeletionTimestamp.IsZero()
}

// Upgradeable is what OLM is told of the operator, but for the type of the condition. The message names the first
// Memcacheds and no number: that would change, and be written, with every rollout that begins or ends.
func Upgradeable(memcacheds []cachev1.Memcached) metav1.Condition {
	var holding []string
	for i := range memcacheds {
		if mc := &memcacheds[i]; HoldsUpgrade(mc) {
			holding = append(holding, mc.Namespace+"/"+mc.Name)
		}
	}
	if len(holding) == 0 {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonNoRollout, Message: "no rollout of a Memcached is in progress"}
	}
	slices.Sort(holding)
	var others string
	if len(holding) > namesLimit {
		holding, others = holding[:namesLimit], " and others"
	}
	return metav1.Condition{
		Status: metav1.ConditionFalse, Reason: cachev1.ReasonRollingOut,
		Message: "rollouts of these Memcacheds are in progress: " + strings.Join(holding, ", ") + others,
	}
}
