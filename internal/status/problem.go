// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// NameConflictError says that an object which a Memcached needs belongs to somebody else.
type NameConflictError struct {
	Kind string
	Name string
	// Owner is the object's controller, nil if it has none.
	Owner *metav1.OwnerReference
}

func (e *NameConflictError) Error() string {
	whose := "is there already and no Memcached controls it"
	if e.Owner != nil {
		whose = fmt.Sprintf("belongs to the %s %q (uid %s)", e.Owner.Kind, e.Owner.Name, e.Owner.UID)
	}
	if e.Owner != nil && e.Owner.Kind == "Memcached" && e.Owner.Name == e.Name {
		return fmt.Sprintf("the %s %q belongs to an earlier Memcached of this name (uid %s) and is left alone: "+
			"it goes by itself unless it was orphaned, then delete it", e.Kind, e.Name, e.Owner.UID)
	}
	return fmt.Sprintf("the %s %q %s; it is left alone. Delete or rename it, or give this Memcached another name", e.Kind, e.Name, whose)
}

// problem is something that needs a person.
type problem struct {
	reason  string
	message string
	// blocksReady: not Ready, however many pods serve.
	blocksReady bool
	// blocksProgress: nothing moves until someone acts.
	blocksProgress bool
}

// problem is the first thing that is wrong, nil if nothing is known to be. The checks go from what stops everything to
// what stops one pod, so that a consequence never hides its cause.
func (v view) problem() *problem {
	checks := []func() *problem{
		v.nameConflict,
		v.applyRefused,
		v.applyFailed,
		v.podsRefused,
		v.deploymentPaused,
		v.imagePullFailed,
		v.containerStartFailed,
		v.crashLooping,
		v.unschedulable,
		v.progressDeadlineExceeded,
	}
	for _, check := range checks {
		if found := check(); found != nil {
			return found
		}
	}
	return nil
}

func (v view) nameConflict() *problem {
	if _, found := errors.AsType[*NameConflictError](v.convergeErr); !found {
		return nil
	}
	return &problem{reason: cachev1.ReasonNameConflict, message: oneLine(v.convergeErr), blocksReady: true, blocksProgress: true}
}

// applyRefused: the API server understood what we asked for and said no.
func (v view) applyRefused() *problem {
	if !apierrors.IsInvalid(v.convergeErr) && !apierrors.IsForbidden(v.convergeErr) && !apierrors.IsBadRequest(v.convergeErr) {
		return nil
	}
	return &problem{reason: cachev1.ReasonApplyRefused, message: oneLine(v.convergeErr), blocksProgress: true}
}

// applyFailed: the API server can't do what we asked for, such as when it can't reach a webhook.
func (v view) applyFailed() *problem {
	if !apierrors.IsInternalError(v.convergeErr) {
		return nil // no error, or one of those that pass: a conflict, a time-out, an API server that is away or busy
	}
	return &problem{reason: cachev1.ReasonApplyFailed, message: oneLine(v.convergeErr)}
}

// oneLine is the text of an error, which has a line for each error that was joined.
func oneLine(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// podsRefused: the Deployment's own controller isn't allowed to create pods, or the ReplicaSet that creates them.
func (v view) podsRefused() *problem {
	failure := v.deploymentCondition(appsv1.DeploymentReplicaFailure)
	if failure == nil || failure.Status != corev1.ConditionTrue {
		failure = v.deploymentCondition(appsv1.DeploymentProgressing)
		if failure == nil || failure.Reason != "ReplicaSetCreateError" {
			return nil
		}
	}
	return &problem{
		reason:  cachev1.ReasonPodsRefused,
		message: fmt.Sprintf("the cluster refuses the pods of Deployment %q: %s", v.Deployment.Name, failure.Message),
	}
}

// deploymentPaused: somebody paused the Deployment, and it has pods of an older template, or none at all. Scaling and the
// replacement of lost pods go on meanwhile, so other differences pass by themselves.
func (v view) deploymentPaused() *problem {
	if v.Deployment == nil || !v.Deployment.Spec.Paused || v.Changed || v.unseen() {
		return nil
	}
	if live := v.Deployment.Status; live.UpdatedReplicas == live.Replicas && (live.Replicas > 0 || v.mc.Spec.Size == 0) {
		return nil
	}
	return &problem{
		reason: cachev1.ReasonDeploymentPaused,
		message: fmt.Sprintf("Deployment %q is paused, so that its pods aren't replaced: to go on, kubectl rollout resume deployment %s",
			v.Deployment.Name, v.Deployment.Name),
		blocksProgress: true,
	}
}

// What a kubelet says of a container that it can't get the image for, or that it can't start. It alternates between some
// of these, with messages that differ, so the messages are not quoted.
var (
	pullFailures  = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
	startFailures = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)

func (v view) imagePullFailed() *problem {
	pod, container := v.waiting(pullFailures)
	if container == nil {
		return nil
	}
	return &problem{
		reason:  cachev1.ReasonImagePullFailed,
		message: fmt.Sprintf("pod %q can't pull the image %q: check the image's name, the registry, and spec.imagePullSecrets", pod, container.Image),
	}
}

func (v view) containerStartFailed() *problem {
	pod, container := v.waiting(startFailures)
	if container == nil {
		return nil
	}
	return &problem{
		reason:  cachev1.ReasonContainerStartFailed,
		message: fmt.Sprintf("container %q of pod %q can't be started (%s): see kubectl describe pod", container.Name, pod, container.State.Waiting.Reason),
	}
}

// waiting finds the first container that waits for one of these reasons, and the name of its pod.
func (v view) waiting(reasons []string) (pod string, container *corev1.ContainerStatus) {
	for i := range v.pods {
		statuses := v.pods[i].Status.ContainerStatuses
		for j := range statuses {
			if waiting := statuses[j].State.Waiting; waiting != nil && slices.Contains(reasons, waiting.Reason) {
				return v.pods[i].Name, &statuses[j]
			}
		}
	}
	return "", nil
}

// crashLooping: a container that has ended once, as after a reboot of its node, is only starting again.
func (v view) crashLooping() *problem {
	for _, pod := range v.pods {
		for _, container := range pod.Status.ContainerStatuses {
			last := container.LastTerminationState.Terminated
			backsOff := container.State.Waiting != nil && container.State.Waiting.Reason == "CrashLoopBackOff"
			if last != nil && !container.Ready && (backsOff || container.RestartCount > 1) {
				return &problem{
					reason: cachev1.ReasonCrashLooping,
					message: fmt.Sprintf("container %q of pod %q exited with code %d (%s): see kubectl logs --previous",
						container.Name, pod.Name, last.ExitCode, last.Reason),
				}
			}
		}
	}
	return nil
}

func (v view) unschedulable() *problem {
	for _, pod := range v.pods {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				return &problem{
					reason:  cachev1.ReasonUnschedulable,
					message: fmt.Sprintf("no node takes pod %q: %s", pod.Name, condition.Message),
				}
			}
		}
	}
	return nil
}

func (v view) progressDeadlineExceeded() *problem {
	if !v.pastDeadline() {
		return nil
	}
	return &problem{
		reason:  cachev1.ReasonProgressDeadlineExceeded,
		message: fmt.Sprintf("Deployment %q made no progress for too long: see its pods and events", v.Deployment.Name),
	}
}

// pastDeadline: the Deployment's controller has given up on the rollout, though it goes on once the cause is gone.
func (v view) pastDeadline() bool {
	progressing := v.deploymentCondition(appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Reason == "ProgressDeadlineExceeded"
}

func (v view) deploymentCondition(kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	if v.Deployment == nil {
		return nil
	}
	for i := range v.Deployment.Status.Conditions {
		if v.Deployment.Status.Conditions[i].Type == kind {
			return &v.Deployment.Status.Conditions[i]
		}
	}
	return nil
}
