// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
)

// imageAnnotation records on the Deployment which image we chose for it. The image in its pod template can't serve
// as the record: someone who edits it would have chosen for us, and the edit would never be healed.
const imageAnnotation = "cache.example.com/image"

// KeptImage is the image that imagePolicy Keep keeps: the one that we chose for this Deployment before.
// It is empty for a Deployment that doesn't exist.
func KeptImage(deployment *appsv1.Deployment) string {
	if deployment == nil {
		return ""
	}
	if kept := deployment.Annotations[imageAnnotation]; kept != "" {
		return kept
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return container.Image // someone removed the annotation
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
