// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/resources"
	"github.com/example-inc/memcached-operator/internal/status"
)

// observe reads what mc has in the cluster.
func (r *MemcachedReconciler) observe(ctx context.Context, mc *cachev1.Memcached) (status.Observed, error) {
	var observed status.Observed
	var err error
	if observed.Deployment, err = find(ctx, r, mc, &appsv1.Deployment{}); err != nil {
		return observed, fmt.Errorf("reading Deployment %q: %w", mc.Name, err)
	}
	if observed.Service, err = find(ctx, r, mc, &corev1.Service{}); err != nil {
		return observed, fmt.Errorf("reading Service %q: %w", mc.Name, err)
	}
	if observed.Deployment != nil && metav1.IsControlledBy(observed.Deployment, mc) {
		observed.KeptImage = resources.KeptImage(observed.Deployment, Name)
		if observed.Pods, err = r.podsOf(ctx, observed.Deployment); err != nil {
			return observed, fmt.Errorf("reading the pods of Deployment %q: %w", mc.Name, err)
		}
	}
	return observed, nil
}

// find reads the object of mc's name into obj, and returns nil where there is none. The cache sees only what carries our
// labels, so when it has nothing the API server is asked: there may be a stranger, or a child of ours that lost its labels.
func find[O client.Object](ctx context.Context, r *MemcachedReconciler, mc *cachev1.Memcached, obj O) (O, error) {
	var none O
	key := client.ObjectKeyFromObject(mc)
	err := r.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		err = r.APIReader.Get(ctx, key, obj)
	}
	if err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return obj, nil
}

// podsOf are the pods that the Deployment controls through its ReplicaSets. Labels alone don't tell: anyone may set them.
func (r *MemcachedReconciler) podsOf(ctx context.Context, deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	mine := []client.ListOption{
		client.InNamespace(deployment.Namespace),
		client.MatchingLabels(resources.SelectorLabels(deployment.Name)),
	}
	replicaSets := &metav1.PartialObjectMetadataList{}
	replicaSets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := r.List(ctx, replicaSets, mine...); err != nil {
		return nil, err
	}
	owners := sets.New[types.UID]()
	for i := range replicaSets.Items {
		if metav1.IsControlledBy(&replicaSets.Items[i], deployment) {
			owners.Insert(replicaSets.Items[i].UID)
		}
	}

	candidates := &corev1.PodList{}
	if err := r.List(ctx, candidates, mine...); err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for i := range candidates.Items {
		if owner := metav1.GetControllerOfNoCopy(&candidates.Items[i]); owner != nil && owners.Has(owner.UID) {
			pods = append(pods, candidates.Items[i])
		}
	}
	return pods, nil
}
