// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package monitoring

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// lifetime is what is asked for; the API server may give less.
	lifetime = 24 * time.Hour
	// renewAnnotation says when half of the lifetime that was given is over.
	renewAnnotation = "cache.example.com/renew-token-after"
)

// keepToken puts a new token of the scraper's account into the Secret when there is none, or half of its time is over.
//
// A Secret of the type kubernetes.io/service-account-token would need no renewal, but its token never ends. And in a bundle
// it is a trap: OLM makes accounts after the bundle's other objects, and Kubernetes deletes such a Secret when it doesn't
// find the account.
func (k *keeper) keepToken(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: Token}, secret); err != nil {
		return fmt.Errorf("reading Secret %q, which is installed with the operator: %w", Token, err)
	}
	now := time.Now()
	renew, err := time.Parse(time.RFC3339, secret.Annotations[renewAnnotation])
	if err == nil && now.Before(renew) && len(secret.Data[TokenKey]) > 0 {
		return nil
	}

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: Scraper}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))}}
	if err := k.client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of service account %q: %w", Scraper, err)
	}
	before := secret.DeepCopy()
	renew = now.Add(request.Status.ExpirationTimestamp.Sub(now) / 2)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, renewAnnotation, renew.UTC().Format(time.RFC3339))
	secret.Data = map[string][]byte{TokenKey: []byte(request.Status.Token)}
	if err := k.client.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing Secret %q: %w", Token, err)
	}
	k.log.Info("Renewed the token that Prometheus scrapes with", "secret", Token, "next", renew.UTC())
	return nil
}
