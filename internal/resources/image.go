// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
)

// imageAnnotation records on the Deployment which image we chose for it, beside the image in its pod template. Whoever
// edits one of the two takes it over, as the managed fields tell, and leaves us the other.
const imageAnnotation = "cache.example.com/image"

// KeptImage is the image that imagePolicy Keep keeps: the one that the field owner chose for this Deployment. What others
// made of it doesn't count, or else an edit of the image would never be healed; but where it can't be told who wrote what,
// what stands there is kept, since to choose anew would empty the caches. It is empty where nothing is to be kept.
func KeptImage(deployment *appsv1.Deployment, fieldOwner string) string {
	owned, err := appsv1ac.ExtractDeployment(deployment, fieldOwner)
	if err != nil || !slices.ContainsFunc(deployment.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == fieldOwner }) {
		return cmp.Or(deployment.Annotations[imageAnnotation], RunningImage(deployment))
	}
	if kept := owned.Annotations[imageAnnotation]; kept != "" {
		return kept
	}
	if owned.Spec == nil || owned.Spec.Template == nil || owned.Spec.Template.Spec == nil {
		return ""
	}
	for _, container := range owned.Spec.Template.Spec.Containers {
		if *container.Name == containerName && container.Image != nil {
			return *container.Image
		}
	}
	return ""
}

// RunningImage is the image in the Deployment's pod template, whoever wrote it.
func RunningImage(deployment *appsv1.Deployment) string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return container.Image
		}
	}
	return ""
}

// image chooses the memcached image: the user's, the kept one, or the operator's default.
func image(mc *cachev1.Memcached, on platform.Platform, kept string) string {
	if mc.Spec.Image == "" && mc.Spec.ImagePolicy == cachev1.ImagePolicyFollow {
		return on.DefaultImage
	}
	return cmp.Or(mc.Spec.Image, kept, on.DefaultImage)
}
