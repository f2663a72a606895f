// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	prefix = "service.beta.openshift.io/"

	// On a Service: which Secret to fill, by which authority that was done, and what prevents it.
	wantedAnnotation   = prefix + "serving-cert-secret-name"
	signedByAnnotation = prefix + "serving-cert-signed-by"
	errorAnnotation    = prefix + "serving-cert-generation-error"

	// On a Secret: for which Service it is, and until when it is good.
	serviceNameAnnotation = prefix + "originating-service-name"
	serviceUIDAnnotation  = prefix + "originating-service-uid"
	expiryAnnotation      = prefix + "expiry"
)

// serviceReconciler fills the Secrets that Services ask for.
type serviceReconciler struct {
	client.Client
	authority *authority
}

// Reconcile fills the Secret of one Service, and says on the Service how that went.
func (r *serviceReconciler) Reconcile(ctx context.Context, service *corev1.Service) (reconcile.Result, error) {
	name := service.Annotations[wantedAnnotation]
	if name == "" {
		return reconcile.Result{}, nil
	}
	before := service.DeepCopy()
	err := r.fill(ctx, service, name)
	if err != nil {
		service.Annotations[errorAnnotation] = err.Error()
	} else {
		service.Annotations[signedByAnnotation] = r.authority.certificate.Subject.CommonName
		delete(service.Annotations, errorAnnotation)
	}
	if !maps.Equal(service.Annotations, before.Annotations) {
		err = errors.Join(err, r.Patch(ctx, service, client.MergeFrom(before)))
	}
	return reconcile.Result{}, err
}

func (r *serviceReconciler) fill(ctx context.Context, service *corev1.Service, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		if exists := secret.UID != ""; exists && secret.Annotations[serviceUIDAnnotation] != string(service.UID) {
			return fmt.Errorf("secret %s/%s does not have corresponding service UID %s", secret.Namespace, name, service.UID)
		}
		names := hostNames(service)
		certificate := r.authority.issued(secret.Data, names)
		if certificate == nil {
			var err error
			if secret.Data, err = r.authority.issue(names); err != nil {
				return fmt.Errorf("issuing a certificate for %s: %w", names[0], err)
			}
			certificate = r.authority.issued(secret.Data, names)
		}
		// Whatever else was put there goes.
		maps.DeleteFunc(secret.Data, func(key string, _ []byte) bool {
			return key != corev1.TLSCertKey && key != corev1.TLSPrivateKeyKey
		})
		secret.Type = corev1.SecretTypeTLS
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, serviceNameAnnotation, service.Name)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, serviceUIDAnnotation, string(service.UID))
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, expiryAnnotation, certificate.NotAfter.Format(time.RFC3339))
		return controllerutil.SetOwnerReference(service, secret, r.Scheme())
	})
	return err
}

// hostNames of a Service, and of its pods if they are reached one by one.
func hostNames(service *corev1.Service) []string {
	const domain = ".cluster.local"
	host := service.Name + "." + service.Namespace + ".svc"
	names := []string{host, host + domain}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		names = append(names, "*."+host, "*."+host+domain)
	}
	return names
}
