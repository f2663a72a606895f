// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package status works out the status of a Memcached from what was observed. It is pure; the times of the
// conditions' transitions are left to whoever writes the status.
package status

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
	"github.com/example-inc/memcached-operator/internal/resources"
)

// Observed is what a Memcached has in the cluster.
type Observed struct {
	// Deployment and Service bear the name of the Memcached, whoever they belong to; nil where there is none.
	Deployment *appsv1.Deployment
	Service    *corev1.Service
	// KeptImage is what resources.KeptImage says of the Deployment, empty where there is none of ours.
	KeptImage string
	// Pods are the Memcached's own, in any order, whatever their phase.
	Pods []corev1.Pod
	// Changed says that converging changed the Deployment or the Service after they were observed.
	Changed bool
	// Redeployed says that it gave the Deployment another spec.
	Redeployed bool
}

// For is the status of mc, given what was observed and what converging it ended with, nil if all went well.
func For(mc *cachev1.Memcached, on platform.Platform, observed Observed, convergeErr error) cachev1.MemcachedStatus {
	pods := nodes(observed.Pods)
	status := cachev1.MemcachedStatus{
		Nodes:              make([]string, 0, len(pods)), // the API server refuses null
		Replicas:           int32(len(pods)),
		Selector:           labels.SelectorFromSet(resources.SelectorLabels(mc.Name)).String(),
		Endpoint:           resources.Endpoint(mc),
		ObservedGeneration: mc.Generation,
	}
	for _, pod := range pods {
		status.Nodes = append(status.Nodes, pod.Name)
		if ready(pod) {
			status.ReadyReplicas++
		}
	}
	if observed.Deployment != nil && metav1.IsControlledBy(observed.Deployment, mc) {
		status.Image = resources.RunningImage(observed.Deployment)
	}

	seen := view{mc: mc, Observed: observed, pods: pods, readyPods: status.ReadyReplicas, convergeErr: convergeErr}
	problem := seen.problem()
	status.Conditions = []metav1.Condition{
		seen.ready(problem),
		seen.progressing(problem),
		degraded(problem),
		updateAvailable(mc, on, observed.KeptImage),
	}
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = mc.Generation
		status.Conditions[i].Message = Shorten(status.Conditions[i].Message, messageLimit)
	}
	return status
}

// messageLimit is how many bytes of a message, some of which quote others, a person can be asked to read. The API server
// would refuse the whole status for a message of over 32768 characters.
const messageLimit = 2048

// Shorten cuts text to at most limit bytes, and shows that it did.
func Shorten(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}

// nodes are the pods that are or may become caches, sorted by name.
func nodes(pods []corev1.Pod) []corev1.Pod {
	var current []corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			current = append(current, pod)
		}
	}
	slices.SortFunc(current, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return current
}

// view is all that the conditions are worked out from.
type view struct {
	Observed
	mc          *cachev1.Memcached
	pods        []corev1.Pod
	readyPods   int32
	convergeErr error
}

// ready tells whether clients can connect to every pod that is asked for. A rollout leaves it True, as old pods
// serve until new ones do.
func (v view) ready(problem *problem) metav1.Condition {
	condition := metav1.Condition{Type: cachev1.ConditionReady, Status: metav1.ConditionFalse}
	size := v.mc.Spec.Size
	switch exists := v.Deployment != nil && v.Service != nil; {
	case problem != nil && (problem.blocksReady || !exists || v.readyPods < size):
		condition.Reason, condition.Message = problem.reason, problem.message
	case !exists:
		condition.Reason = cachev1.ReasonPodsNotReady
		condition.Message = fmt.Sprintf("the Deployment and the Service %q are being created", v.mc.Name)
	case v.readyPods < size:
		condition.Reason = cachev1.ReasonPodsNotReady
		condition.Message = fmt.Sprintf("%d of %d pods accept connections", v.readyPods, size)
	case size == 0:
		condition.Status = metav1.ConditionTrue
		condition.Reason = cachev1.ReasonScaledToZero
		condition.Message = "size is 0: no pods are asked for"
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason = cachev1.ReasonAllPodsReady
		condition.Message = fmt.Sprintf("clients can connect to all %d pods", size)
	}
	return condition
}

// progressing tells whether pods are being added, removed or replaced, and nothing known stands in the way.
func (v view) progressing(problem *problem) metav1.Condition {
	condition := metav1.Condition{Type: cachev1.ConditionProgressing, Status: metav1.ConditionFalse}
	switch {
	case problem != nil && (problem.blocksProgress || v.pastDeadline()):
		condition.Reason, condition.Message = problem.reason, problem.message
	case v.rolledOut():
		condition.Reason = cachev1.ReasonRolloutComplete
		condition.Message = fmt.Sprintf("all %d pods are as the spec asks", v.mc.Spec.Size)
	case v.rollingOut():
		condition.Status = metav1.ConditionTrue
		condition.Reason = cachev1.ReasonRollingOut
		condition.Message = fmt.Sprintf("moving to %d pods of the current spec", v.mc.Spec.Size)
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason = cachev1.ReasonAdjusting
		condition.Message = fmt.Sprintf("moving to %d ready pods; none is being replaced", v.mc.Spec.Size)
	}
	return condition
}

// rolledOut is true when exactly the pods asked for are there, all of them as the Deployment now says, and ready.
func (v view) rolledOut() bool {
	if v.Changed || v.convergeErr != nil || v.Deployment == nil || v.Service == nil {
		return false
	}
	size, live := v.mc.Spec.Size, v.Deployment.Status
	return !v.unseen() && live.UpdatedReplicas == size && live.Replicas == size &&
		int(size) == len(v.pods) && v.readyPods == size
}

// rollingOut tells, of what isn't rolled out, whether the Deployment's controller works on a new pod template, or has yet to
// look at it. Its progress deadline runs then, and only then: nothing limits how long a pod may take that scaling added or
// that takes the place of a lost one, how long somebody else keeps changing the Service back, or how long a Deployment
// takes that is being deleted, whose pods are no longer made.
func (v view) rollingOut() bool {
	switch {
	case v.Deployment == nil:
		return v.convergeErr == nil
	case v.Deployment.Spec.Paused || !v.Deployment.DeletionTimestamp.IsZero():
		return false
	case v.Redeployed || v.unseen():
		return true
	}
	progressing := v.deploymentCondition(appsv1.DeploymentProgressing)
	return progressing == nil || progressing.Reason != "NewReplicaSetAvailable"
}

// unseen: the Deployment changed, and its controller has yet to look at it.
func (v view) unseen() bool {
	return v.Deployment.Status.ObservedGeneration < v.Deployment.Generation
}

func degraded(problem *problem) metav1.Condition {
	if problem == nil {
		return metav1.Condition{
			Type: cachev1.ConditionDegraded, Status: metav1.ConditionFalse,
			Reason: cachev1.ReasonAsExpected, Message: "nothing needs attention",
		}
	}
	return metav1.Condition{
		Type: cachev1.ConditionDegraded, Status: metav1.ConditionTrue,
		Reason: problem.reason, Message: problem.message,
	}
}

func updateAvailable(mc *cachev1.Memcached, on platform.Platform, kept string) metav1.Condition {
	condition := metav1.Condition{Type: cachev1.ConditionUpdateAvailable, Status: metav1.ConditionFalse}
	switch {
	case mc.Spec.Image != "":
		condition.Reason = cachev1.ReasonImageSet
		condition.Message = "spec.image chooses the image"
	case mc.Spec.ImagePolicy != cachev1.ImagePolicyFollow && kept != "" && kept != on.DefaultImage:
		condition.Status = metav1.ConditionTrue
		condition.Reason = cachev1.ReasonDefaultDiffers
		condition.Message = fmt.Sprintf("the operator's default image is %s, these pods keep %s; to move, set spec.imagePolicy to Follow "+
			"or spec.image to the new one: pods are then replaced one at a time and start empty", on.DefaultImage, kept)
	default:
		condition.Reason = cachev1.ReasonRunsDefault
		condition.Message = "the operator's default image is " + on.DefaultImage
	}
	return condition
}

func ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}
