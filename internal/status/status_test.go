// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
)

const (
	defaultImage = "docker.io/library/memcached:1.6.45"
	oldImage     = "docker.io/library/memcached:1.6.40"
)

var on = platform.Platform{DefaultImage: defaultImage}

func memcached(size int32) *cachev1.Memcached {
	return &cachev1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop", UID: "1", Generation: 7},
		Spec:       cachev1.MemcachedSpec{Size: size, ImagePolicy: cachev1.ImagePolicyKeep},
	}
}

// deployment is one whose controller has seen its generation and has that many current pods.
func deployment(pods int32, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cart", Namespace: "shop", Generation: 4,
			OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: new(true)}},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: pods, UpdatedReplicas: pods},
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "injected", Image: "proxy"}, {Name: "memcached", Image: defaultImage}}
	for _, change := range changes {
		change(d)
	}
	return d
}

func withCondition(condition appsv1.DeploymentCondition) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Status.Conditions = append(d.Status.Conditions, condition) }
}

func pod(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func serving(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func waiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "memcached", Image: "registry.example.com/memcached:typo",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "differs every time"}},
		}}
	}
}

// crashed is between two restarts of that many, or starting once more.
func crashed(restarts int32, state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "memcached", RestartCount: restarts, State: state,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 64, Reason: "Error"}},
		}}
	}
}

func unschedulable(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/1 nodes are available: 1 Insufficient memory.",
	}}
}

func TestNodesAreTheCurrentPodsSorted(t *testing.T) {
	tests := map[string]struct {
		pods             []corev1.Pod
		want             []string
		wantReadyMembers int32
	}{
		"no pods give an empty list, which is not null": {want: []string{}},
		"any order gives the sorted one":                {pods: []corev1.Pod{pod("c", serving), pod("a"), pod("b", serving)}, want: []string{"a", "b", "c"}, wantReadyMembers: 2},
		"what terminates, failed or succeeded is none": {
			pods: []corev1.Pod{pod("a", serving, terminating), pod("b", phase(corev1.PodFailed)), pod("c", phase(corev1.PodSucceeded)), pod("d", phase(corev1.PodPending))},
			want: []string{"d"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := For(memcached(3), on, Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: test.pods}, nil)
			if diff := cmp.Diff(test.want, got.Nodes); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if got.Replicas != int32(len(test.want)) || got.ReadyReplicas != test.wantReadyMembers {
				t.Errorf("replicas and readyReplicas are %d and %d, want %d and %d", got.Replicas, got.ReadyReplicas, len(test.want), test.wantReadyMembers)
			}
		})
	}
}

func TestFieldsForClientsAndAutoscalers(t *testing.T) {
	got := For(memcached(0), on, Observed{Deployment: deployment(0), Service: &corev1.Service{}}, nil)
	got.Conditions = nil
	want := cachev1.MemcachedStatus{
		Nodes:              []string{},
		Selector:           "app=memcached,memcached_cr=cart",
		Endpoint:           "cart.shop.svc:11211",
		Image:              defaultImage,
		ObservedGeneration: 7,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestConditions(t *testing.T) {
	refused := fmt.Errorf("applying Deployment %q: %w", "cart",
		apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "cart", errors.New("exceeded quota: count")))
	three := []corev1.Pod{pod("a", serving), pod("b", serving), pod("c", serving)}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	backingOff := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	complete := withCondition(appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"})
	updating := withCondition(appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"})
	paused := func(d *appsv1.Deployment) { d.Spec.Paused = true }
	deadline := withCondition(appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"})

	type condition struct {
		status metav1.ConditionStatus
		reason string
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	tests := map[string]struct {
		size        int32
		observed    Observed
		err         error
		ready       condition
		progressing condition
		degraded    condition
		messages    []string // parts of the message of Degraded, or of Ready if that has no problem
	}{
		"nothing is there yet": {
			size:  3,
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
			messages: []string{"are being created"},
		},
		"size 0 is not ready before the Deployment and the Service are there": {
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"some pods serve": {
			size: 3, observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", serving), pod("b"), pod("c", serving)}},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
			messages: []string{"2 of 3"},
		},
		"all pods serve": {
			size: 3, observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{no, cachev1.ReasonRolloutComplete}, degraded: condition{no, cachev1.ReasonAsExpected},
			messages: []string{"all 3 pods"},
		},
		"scaled to zero": {
			observed: Observed{Deployment: deployment(0), Service: &corev1.Service{}},
			ready:    condition{yes, cachev1.ReasonScaledToZero}, progressing: condition{no, cachev1.ReasonRolloutComplete}, degraded: condition{no, cachev1.ReasonAsExpected},
			messages: []string{"size is 0"},
		},
		"without a Service clients find nothing": {
			size: 3, observed: Observed{Deployment: deployment(3), Pods: three},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a rollout that has just begun leaves Ready alone": {
			size: 3, observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three, Changed: true, Redeployed: true},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a rollout that the Deployment's controller has not seen": {
			size: 3, observed: Observed{Deployment: deployment(3, func(d *appsv1.Deployment) { d.Generation++ }), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"an old pod is left": {
			size: 3, observed: Observed{Deployment: deployment(3, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 2 }), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"the Deployment's controller is at work": {
			size: 3, observed: Observed{Deployment: deployment(3, updating), Service: &corev1.Service{}, Pods: three[:2]},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a pod is lost after the rollout": {
			size: 3, observed: Observed{Deployment: deployment(3, complete), Service: &corev1.Service{}, Pods: append([]corev1.Pod{pod("z")}, three[:2]...)},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"pods are added after the rollout": {
			size: 3, observed: Observed{Deployment: deployment(1, complete), Service: &corev1.Service{}, Pods: three[:1]},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a rollout that has just begun after another": {
			size: 3, observed: Observed{Deployment: deployment(3, complete), Service: &corev1.Service{}, Pods: three, Changed: true, Redeployed: true},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a rollout after another that the Deployment's controller has not seen": {
			size: 3, observed: Observed{Deployment: deployment(3, complete, func(d *appsv1.Deployment) { d.Generation++ }), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"somebody else keeps changing the Service": {
			size: 3, observed: Observed{Deployment: deployment(3, complete), Service: &corev1.Service{}, Pods: three, Changed: true},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a Deployment that is being deleted in the middle of a rollout": {
			size: 3, observed: Observed{
				Deployment: deployment(3, updating, func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.Now()) }), Service: &corev1.Service{},
			},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a Service that can't be written after the rollout": {
			size: 3, err: errors.New("some error"), observed: Observed{Deployment: deployment(3, complete), Pods: three},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a Deployment that can't be created": {
			size: 3, err: errors.New("some error"),
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a change while the Deployment is paused": {
			size: 3, observed: Observed{Deployment: deployment(3, updating, paused, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{no, cachev1.ReasonDeploymentPaused}, degraded: condition{yes, cachev1.ReasonDeploymentPaused},
			messages: []string{"kubectl rollout resume deployment cart"},
		},
		"a pod is lost while the Deployment is paused": {
			size: 3, observed: Observed{Deployment: deployment(3, updating, paused), Service: &corev1.Service{}, Pods: three[:2]},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"pods are added while the Deployment is paused": {
			size: 3, observed: Observed{Deployment: deployment(2, updating, paused), Service: &corev1.Service{}, Pods: three[:2]},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"pods are removed while the Deployment is paused": {
			size: 1, observed: Observed{Deployment: deployment(2, updating, paused), Service: &corev1.Service{}, Pods: three[:2]},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonAdjusting}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a Deployment that was paused before it made a pod": {
			size: 3, observed: Observed{Deployment: deployment(0, updating, paused), Service: &corev1.Service{}},
			ready: condition{no, cachev1.ReasonDeploymentPaused}, progressing: condition{no, cachev1.ReasonDeploymentPaused}, degraded: condition{yes, cachev1.ReasonDeploymentPaused},
		},
		"a paused Deployment that is as it should be": {
			size: 3, observed: Observed{Deployment: deployment(3, paused), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{no, cachev1.ReasonRolloutComplete}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a pod too many is left": {
			size: 2, observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a name conflict stops everything, whatever the pods do": {
			size: 3, observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three},
			err:   errors.Join(&NameConflictError{Kind: "Service", Name: "cart", Owner: &metav1.OwnerReference{Kind: "Shop", Name: "corner", UID: "9"}}),
			ready: condition{no, cachev1.ReasonNameConflict}, progressing: condition{no, cachev1.ReasonNameConflict}, degraded: condition{yes, cachev1.ReasonNameConflict},
			messages: []string{`Service "cart"`, `Shop "corner"`, "another name"},
		},
		"a refused Deployment": {
			size: 3, err: refused,
			ready: condition{no, cachev1.ReasonApplyRefused}, progressing: condition{no, cachev1.ReasonApplyRefused}, degraded: condition{yes, cachev1.ReasonApplyRefused},
			messages: []string{"exceeded quota: count", `Deployment "cart"`},
		},
		"a refused change while the old pods serve": {
			size: 3, err: refused, observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{no, cachev1.ReasonApplyRefused}, degraded: condition{yes, cachev1.ReasonApplyRefused},
		},
		"a write that fails in the API server": {
			size: 3, err: apierrors.NewInternalError(errors.New("failed calling webhook")), observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonApplyFailed},
			messages: []string{"failed calling webhook"},
		},
		"a conflict passes and is no news": {
			size: 3, err: apierrors.NewConflict(schema.GroupResource{Resource: "Service"}, "cart", errors.New("changed")), observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"an API server that is away is no news": {
			size: 3, err: errors.New("dial tcp 127.0.0.1:43210: connection refused"), observed: Observed{Deployment: deployment(3), Service: &corev1.Service{}, Pods: three},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"two refusals are both told, in one line": {
			size: 3, err: errors.Join(refused, refused),
			ready: condition{no, cachev1.ReasonApplyRefused}, progressing: condition{no, cachev1.ReasonApplyRefused}, degraded: condition{yes, cachev1.ReasonApplyRefused},
			messages: []string{"exceeded quota: count; applying"},
		},
		"quota or admission refuses the pods": {
			size: 3, observed: Observed{Service: &corev1.Service{}, Deployment: deployment(0, withCondition(appsv1.DeploymentCondition{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "cart-1" is forbidden: exceeded quota: tiny`,
			}))},
			ready: condition{no, cachev1.ReasonPodsRefused}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonPodsRefused},
			messages: []string{"exceeded quota: tiny", `Deployment "cart"`},
		},
		"quota refuses the ReplicaSet, which the Deployment's controller then takes for a Deployment that it hasn't seen": {
			size: 3, observed: Observed{Service: &corev1.Service{}, Pods: three, Deployment: deployment(3, func(d *appsv1.Deployment) { d.Generation++ }, withCondition(appsv1.DeploymentCondition{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ReplicaSetCreateError", Message: "exceeded quota: few",
			}))},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonPodsRefused},
			messages: []string{"exceeded quota: few"},
		},
		"an image that can't be pulled": {
			size: 1, observed: Observed{Deployment: deployment(1), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", phase(corev1.PodPending), waiting("ErrImagePull"))}},
			ready: condition{no, cachev1.ReasonImagePullFailed}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonImagePullFailed},
			messages: []string{`pod "a"`, `"registry.example.com/memcached:typo"`, "imagePullSecrets"},
		},
		"a new image that can't be pulled while the old pods serve": {
			size: 3, observed: Observed{Deployment: deployment(4), Service: &corev1.Service{}, Pods: append([]corev1.Pod{pod("z", waiting("ImagePullBackOff"))}, three...)},
			ready: condition{yes, cachev1.ReasonAllPodsReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonImagePullFailed},
		},
		"a container that is being created is no problem": {
			size: 1, observed: Observed{Deployment: deployment(1), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", waiting("ContainerCreating"))}},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"a container that can't be started": {
			size: 1, observed: Observed{Deployment: deployment(1), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", waiting("CreateContainerConfigError"))}},
			ready: condition{no, cachev1.ReasonContainerStartFailed}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonContainerStartFailed},
			messages: []string{`pod "a"`, "CreateContainerConfigError"},
		},
		"memcached ended once, as with its node, and starts": {
			size: 1, observed: Observed{Deployment: deployment(1), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", crashed(1, running))}},
			ready: condition{no, cachev1.ReasonPodsNotReady}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{no, cachev1.ReasonAsExpected},
		},
		"memcached starts once more after it ended twice": {
			size: 1, observed: Observed{Deployment: deployment(1), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", crashed(2, running))}},
			ready: condition{no, cachev1.ReasonCrashLooping}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonCrashLooping},
		},
		"memcached exits": {
			size: 1, observed: Observed{Deployment: deployment(1), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", crashed(1, backingOff))}},
			ready: condition{no, cachev1.ReasonCrashLooping}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonCrashLooping},
			messages: []string{`pod "a"`, "code 64", "--previous"},
		},
		"no node takes a pod": {
			size: 1, observed: Observed{Deployment: deployment(1), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", unschedulable)}},
			ready: condition{no, cachev1.ReasonUnschedulable}, progressing: condition{yes, cachev1.ReasonRollingOut}, degraded: condition{yes, cachev1.ReasonUnschedulable},
			messages: []string{`pod "a"`, "Insufficient memory"},
		},
		"a rollout past its deadline has stopped": {
			size: 1, observed: Observed{Deployment: deployment(1, deadline), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a")}},
			ready: condition{no, cachev1.ReasonProgressDeadlineExceeded}, progressing: condition{no, cachev1.ReasonProgressDeadlineExceeded}, degraded: condition{yes, cachev1.ReasonProgressDeadlineExceeded},
			messages: []string{`Deployment "cart"`},
		},
		"past the deadline the cause is named, not the deadline": {
			size: 1, observed: Observed{Deployment: deployment(1, deadline), Service: &corev1.Service{}, Pods: []corev1.Pod{pod("a", waiting("ErrImagePull"))}},
			ready: condition{no, cachev1.ReasonImagePullFailed}, progressing: condition{no, cachev1.ReasonImagePullFailed}, degraded: condition{yes, cachev1.ReasonImagePullFailed},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := For(memcached(test.size), on, test.observed, test.err)
			for kind, want := range map[string]condition{
				cachev1.ConditionReady:       test.ready,
				cachev1.ConditionProgressing: test.progressing,
				cachev1.ConditionDegraded:    test.degraded,
			} {
				c := meta.FindStatusCondition(got.Conditions, kind)
				if c.Status != want.status || c.Reason != want.reason {
					t.Errorf("%s is %s (%s), want %s (%s)", kind, c.Status, c.Reason, want.status, want.reason)
				}
				if c.Message == "" || c.ObservedGeneration != 7 {
					t.Errorf("%s has message %q and observedGeneration %d", kind, c.Message, c.ObservedGeneration)
				}
			}
			message := meta.FindStatusCondition(got.Conditions, cachev1.ConditionDegraded).Message
			if test.degraded.status == no {
				message = meta.FindStatusCondition(got.Conditions, cachev1.ConditionReady).Message
			}
			for _, part := range test.messages {
				if !strings.Contains(message, part) {
					t.Errorf("message %q does not contain %q", message, part)
				}
			}
			if strings.Contains(message, "differs every time") {
				t.Errorf("message %q quotes what changes from one moment to the next", message)
			}
		})
	}
}

func TestALongMessageIsCut(t *testing.T) {
	err := apierrors.NewForbidden(schema.GroupResource{}, "cart", errors.New(strings.Repeat("ü", 40000)))
	got := For(memcached(1), on, Observed{}, err)
	message := meta.FindStatusCondition(got.Conditions, cachev1.ConditionDegraded).Message
	if len(message) > messageLimit || len(message) < messageLimit-4 || !strings.HasSuffix(message, "ü…") {
		t.Errorf("message has %d bytes and ends in %q", len(message), message[len(message)-8:])
	}
}

func TestUpdateAvailable(t *testing.T) {
	tests := map[string]struct {
		spec       cachev1.MemcachedSpec
		kept       string
		wantStatus metav1.ConditionStatus
		wantReason string
	}{
		"nothing runs yet":                   {wantStatus: metav1.ConditionFalse, wantReason: cachev1.ReasonRunsDefault},
		"the default runs":                   {kept: defaultImage, wantStatus: metav1.ConditionFalse, wantReason: cachev1.ReasonRunsDefault},
		"an older default is kept":           {kept: oldImage, wantStatus: metav1.ConditionTrue, wantReason: cachev1.ReasonDefaultDiffers},
		"with Follow it is being moved":      {spec: cachev1.MemcachedSpec{ImagePolicy: cachev1.ImagePolicyFollow}, kept: oldImage, wantStatus: metav1.ConditionFalse, wantReason: cachev1.ReasonRunsDefault},
		"the user's image is the user's own": {spec: cachev1.MemcachedSpec{Image: oldImage}, kept: oldImage, wantStatus: metav1.ConditionFalse, wantReason: cachev1.ReasonImageSet},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mc := memcached(1)
			mc.Spec = test.spec
			got := updateAvailable(mc, on, test.kept)
			if got.Status != test.wantStatus || got.Reason != test.wantReason {
				t.Errorf("UpdateAvailable is %s (%s), want %s (%s)", got.Status, got.Reason, test.wantStatus, test.wantReason)
			}
			if got.Status == metav1.ConditionTrue && (!strings.Contains(got.Message, oldImage) || !strings.Contains(got.Message, defaultImage)) {
				t.Errorf("message %q does not name both images", got.Message)
			}
		})
	}
}
