// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority is the cluster's one certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// keyPair is a certificate and its key, PEM encoded.
type keyPair struct {
	certificate, key []byte
}

// The cluster lives for hours, its certificates for a year. The hour before is
// for a clock that is set back.
func newCertificate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
	}, nil
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	// Not the name of the servers: OpenSSL takes a certificate whose issuer has its own name for one that signed itself.
	template, err := newCertificate(pkix.Name{CommonName: nodeName + "-ca"})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	return &authority{
		certificate: certificate,
		key:         key,
		pem:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// client issues a certificate for a user and, optionally, a group.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template, err := newCertificate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// server issues the certificate that all of the node's servers show.
func (a *authority) server() (keyPair, error) {
	template, err := newCertificate(pkix.Name{CommonName: nodeName})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = servingNames
	for _, address := range servingAddresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("making the key of %s: %w", template.Subject.CommonName, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("making the certificate of %s: %w", template.Subject.CommonName, err)
	}
	encodedKey, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         encodedKey,
	}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// writeCredentials makes everything that the cluster's parts know each other by.
func writeCredentials() error {
	if err := os.MkdirAll(pkiDir, 0o700); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	caKey, err := encodeKey(ca.key)
	if err != nil {
		return err
	}
	serving, err := ca.server()
	if err != nil {
		return err
	}
	kubeletClient, err := ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	frontProxy, err := ca.client("front-proxy-client")
	if err != nil {
		return err
	}
	serviceAccounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the service accounts' key: %w", err)
	}
	serviceAccountsKey, err := encodeKey(serviceAccounts)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt":               ca.pem,
		"ca.key":               caKey,
		"serving.crt":          serving.certificate,
		"serving.key":          serving.key,
		"kubelet-client.crt":   kubeletClient.certificate,
		"kubelet-client.key":   kubeletClient.key,
		"front-proxy.crt":      frontProxy.certificate,
		"front-proxy.key":      frontProxy.key,
		"service-accounts.key": serviceAccountsKey,
	} {
		if err := os.WriteFile(filepath.Join(pkiDir, name), content, 0o600); err != nil {
			return fmt.Errorf("writing a credential: %w", err)
		}
	}

	for _, holder := range []struct{ path, user, group string }{
		{adminKubeconfig, "kubernetes-admin", "system:masters"},
		{kubeconfigOf("kube-controller-manager"), "system:kube-controller-manager", ""},
		{kubeconfigOf("kube-scheduler"), "system:kube-scheduler", ""},
		{kubeconfigOf("kube-proxy"), "system:kube-proxy", ""},
		{kubeconfigOf("kubelet"), "system:node:" + nodeName, "system:nodes"},
	} {
		var groups []string
		if holder.group != "" {
			groups = append(groups, holder.group)
		}
		pair, err := ca.client(holder.user, groups...)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(kubeconfig(ca.pem, holder.user, pair), holder.path); err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", holder.user, err)
		}
	}
	return nil
}

func kubeconfigOf(component string) string {
	return filepath.Join(configDir, component+".kubeconfig")
}

func kubeconfig(ca []byte, user string, pair keyPair) clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[nodeName] = &clientcmdapi.Cluster{Server: apiServerURL, CertificateAuthorityData: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.certificate, ClientKeyData: pair.key}
	config.Contexts[nodeName] = &clientcmdapi.Context{Cluster: nodeName, AuthInfo: user}
	config.CurrentContext = nodeName
	return *config
}
