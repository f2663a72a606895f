// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// reporting is a Memcached whose status has those two conditions.
func reporting(name string, progressing, degraded metav1.Condition) cachev1.Memcached {
	progressing.Type, degraded.Type = cachev1.ConditionProgressing, cachev1.ConditionDegraded
	return cachev1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Status:     cachev1.MemcachedStatus{Conditions: []metav1.Condition{progressing, degraded}},
	}
}

func TestUpgradesWaitForWhatMovesByItself(t *testing.T) {
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	rollingOut := metav1.Condition{Status: yes, Reason: cachev1.ReasonRollingOut}
	wrong := func(reason string) metav1.Condition { return metav1.Condition{Status: yes, Reason: reason} }
	stopped := func(reason string) metav1.Condition { return metav1.Condition{Status: no, Reason: reason} }
	fine := metav1.Condition{Status: no, Reason: cachev1.ReasonAsExpected}
	deleted := reporting("cart", rollingOut, fine)
	deleted.DeletionTimestamp = new(metav1.Now())

	tests := map[string]struct {
		memcached cachev1.Memcached
		want      bool
	}{
		"a rollout":                     {reporting("cart", rollingOut, fine), true},
		"a rollout of one that goes":    {deleted, false},
		"no status yet":                 {cachev1.Memcached{}, false},
		"a rollout that is complete":    {reporting("cart", stopped(cachev1.ReasonRolloutComplete), fine), false},
		"scaling, or a lost pod":        {reporting("cart", metav1.Condition{Status: yes, Reason: cachev1.ReasonAdjusting}, fine), false},
		"an image that can't be pulled": {reporting("cart", rollingOut, wrong(cachev1.ReasonImagePullFailed)), false},
		"a container that can't start":  {reporting("cart", rollingOut, wrong(cachev1.ReasonContainerStartFailed)), false},
		"a crash loop":                  {reporting("cart", rollingOut, wrong(cachev1.ReasonCrashLooping)), false},
		"no node":                       {reporting("cart", rollingOut, wrong(cachev1.ReasonUnschedulable)), false},
		"pods that quota refuses":       {reporting("cart", rollingOut, wrong(cachev1.ReasonPodsRefused)), false},
		"a webhook that is away":        {reporting("cart", rollingOut, wrong(cachev1.ReasonApplyFailed)), false},
		"a Deployment that is refused":  {reporting("cart", stopped(cachev1.ReasonApplyRefused), wrong(cachev1.ReasonApplyRefused)), false},
		"a paused Deployment":           {reporting("cart", stopped(cachev1.ReasonDeploymentPaused), wrong(cachev1.ReasonDeploymentPaused)), false},
		"a name conflict":               {reporting("cart", stopped(cachev1.ReasonNameConflict), wrong(cachev1.ReasonNameConflict)), false},
		"a passed deadline":             {reporting("cart", stopped(cachev1.ReasonProgressDeadlineExceeded), wrong(cachev1.ReasonProgressDeadlineExceeded)), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HoldsUpgrade(&test.memcached); got != test.want {
				t.Errorf("it holds an upgrade: %t, want %t", got, test.want)
			}
			want := yes
			if test.want {
				want = no
			}
			if got := Upgradeable([]cachev1.Memcached{reporting("done", stopped(cachev1.ReasonRolloutComplete), fine), test.memcached}); got.Status != want {
				t.Errorf("beside one that is done, Upgradeable is %s (%s), want %s", got.Status, got.Message, want)
			}
		})
	}
}

func TestUpgradeableNamesWhatHolds(t *testing.T) {
	var memcacheds []cachev1.Memcached
	add := func(name string) {
		memcacheds = append(memcacheds, reporting(name, metav1.Condition{Status: metav1.ConditionTrue, Reason: cachev1.ReasonRollingOut}, metav1.Condition{}))
	}
	for _, step := range []struct{ add, want string }{
		{"c", "in progress: shop/c"},
		{"b", "in progress: shop/b, shop/c"},
		{"d", "in progress: shop/b, shop/c, shop/d"},
		{"a", "in progress: shop/a, shop/b, shop/c and others"},
		{"e", "in progress: shop/a, shop/b, shop/c and others"},
	} {
		add(step.add)
		got := Upgradeable(memcacheds)
		if got.Status != metav1.ConditionFalse || got.Reason == "" || !strings.HasSuffix(got.Message, step.want) {
			t.Errorf("with %s it is %s (%s) %q, want a message that ends in %q", step.add, got.Status, got.Reason, got.Message, step.want)
		}
	}
	if got := Upgradeable(nil); got.Status != metav1.ConditionTrue || got.Reason == "" || got.Message == "" {
		t.Errorf("without a Memcached it is %+v", got)
	}
}
