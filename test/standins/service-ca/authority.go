// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// The authority is kept where the original keeps its own.
	namespace  = "openshift-service-ca"
	secretName = "signing-key"

	keySize = 2048
	// years that a serving certificate is valid.
	years = 2
)

// authority issues all certificates. The maps of a Secret of the type kubernetes.io/tls hold them.
type authority struct {
	certificate *x509.Certificate
	key         any
	bundle      []byte // the certificate, PEM encoded
}

// keptAuthority is the one of the process before, or else a new one that is kept for the next.
func keptAuthority(ctx context.Context, c client.Client) (*authority, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secretName}, secret)
	if apierrors.IsNotFound(err) {
		if secret, err = newSigningKey(); err != nil {
			return nil, fmt.Errorf("making the authority: %w", err)
		}
		err = c.Create(ctx, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the authority in Secret %s/%s: %w", namespace, secretName, err)
	}
	bundle := secret.Data[corev1.TLSCertKey]
	pair, err := tls.X509KeyPair(bundle, secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading the authority of Secret %s/%s (delete it for a new one): %w", namespace, secretName, err)
	}
	return &authority{certificate: pair.Leaf, key: pair.PrivateKey, bundle: bundle}, nil
}

func newSigningKey() (*corev1.Secret, error) {
	key, err := rsa.GenerateKey(rand.Reader, keySize)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("openshift-service-serving-signer@%d", time.Now().Unix())
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	data, err := encode(key, certificate.Raw)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName},
		Type:       corev1.SecretTypeTLS,
		Data:       data,
	}, nil
}

// issue makes a certificate for a server of these names. As in the original, the authority's own follows it.
func (a *authority) issue(names []string) (map[string][]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, keySize)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    names,
		NotBefore:   time.Now(),
		NotAfter:    time.Now().AddDate(years, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return encode(key, certificate, a.certificate.Raw)
}

// issued is the certificate in data, or nil unless this authority issued it for a server of just these names.
func (a *authority) issued(data map[string][]byte, names []string) *x509.Certificate {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil || pair.Leaf.CheckSignatureFrom(a.certificate) != nil || !slices.Equal(pair.Leaf.DNSNames, names) {
		return nil
	}
	return pair.Leaf
}

func encode(key *rsa.PrivateKey, certificates ...[]byte) (map[string][]byte, error) {
	encodedKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	var chain []byte
	for _, certificate := range certificates {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: certificate})...)
	}
	return map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: encodedKey}, nil
}
