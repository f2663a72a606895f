// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package v1

// Condition types of a Memcached. docs/conditions.md explains each, with its reasons, to users.
const (
	// ConditionReady is True when clients can connect to every pod that spec.size asks for.
	ConditionReady = "Ready"
	// ConditionProgressing is True while pods are being added, removed or replaced.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when something needs a person; Ready may be True all the same,
	// as when a new image can't be pulled and the pods of the old one still serve.
	ConditionDegraded = "Degraded"
	// ConditionUpdateAvailable is True when the operator's default image differs from the one that is kept.
	ConditionUpdateAvailable = "UpdateAvailable"
)

// Reasons of Ready, and of Degraded where they say what is wrong.
const (
	// ReasonAllPodsReady: every pod asked for accepts connections.
	ReasonAllPodsReady = "AllPodsReady"
	// ReasonScaledToZero: spec.size is 0, so there is nothing to connect to and nothing missing.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonPodsNotReady: pods are missing or don't accept connections yet, and nothing is known to be wrong.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonNameConflict: a Deployment or Service of the same name belongs to somebody else.
	ReasonNameConflict = "NameConflict"
	// ReasonApplyRefused: the API server refused the Deployment or the Service.
	ReasonApplyRefused = "ApplyRefused"
	// ReasonApplyFailed: the API server fails to write the Deployment or the Service; it is tried again.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonPodsRefused: quota or an admission rule refuses the pods.
	ReasonPodsRefused = "PodsRefused"
	// ReasonDeploymentPaused: somebody paused the Deployment, whose pods aren't those that the spec asks for.
	ReasonDeploymentPaused = "DeploymentPaused"
	// ReasonImagePullFailed: a node can't pull the image.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonContainerStartFailed: a node can't start a container.
	ReasonContainerStartFailed = "ContainerStartFailed"
	// ReasonCrashLooping: memcached exits again and again.
	ReasonCrashLooping = "CrashLooping"
	// ReasonUnschedulable: no node takes a pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonProgressDeadlineExceeded: the Deployment made no progress within its deadline.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonAsExpected: nothing needs a person.
	ReasonAsExpected = "AsExpected"
)

// Reasons of Progressing; while it is stopped by a problem, the reason is that of Degraded.
const (
	// ReasonRollingOut: pods of a new or changed spec are being made, within the Deployment's progress deadline.
	ReasonRollingOut = "RollingOut"
	// ReasonAdjusting: pods are missing, too many or not ready, but none is being replaced; no deadline runs.
	ReasonAdjusting = "Adjusting"
	// ReasonRolloutComplete: the pods are as the spec asks.
	ReasonRolloutComplete = "RolloutComplete"
)

// Reasons of UpdateAvailable.
const (
	// ReasonDefaultDiffers: the operator's default image isn't the one that is kept.
	ReasonDefaultDiffers = "DefaultDiffers"
	// ReasonRunsDefault: the operator's default image is the one that runs.
	ReasonRunsDefault = "RunsDefault"
	// ReasonImageSet: spec.image chooses the image, whatever the operator's default is.
	ReasonImageSet = "ImageSet"
)
