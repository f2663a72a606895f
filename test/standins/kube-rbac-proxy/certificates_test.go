// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
)

// host is whom all certificates are for.
const host = "metrics.example.svc"

// certificates is a folder as the kubelet makes one of a Secret: the files are links into "..data", which is a link to
// the folder that has the current ones.
type certificates struct {
	dir     string
	current string
	trusted *x509.CertPool // all that there ever were
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	c := &certificates{dir: t.TempDir(), trusted: x509.NewCertPool()}
	for _, file := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(c.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	c.renew(t)
	return c
}

// renew puts a new certificate in place of the one that is there.
func (c *certificates) renew(t *testing.T) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.trusted.AppendCertsFromPEM(certificate)
	before := c.current
	if c.current, err = os.MkdirTemp(c.dir, ".."); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key} {
		if err := os.WriteFile(filepath.Join(c.current, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next := filepath.Join(c.dir, "..next")
	if err := os.Symlink(filepath.Base(c.current), next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(c.dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if before != "" {
		if err := os.RemoveAll(before); err != nil {
			t.Fatal(err)
		}
	}
}

// client trusts these certificates, and speaks HTTP/2 with who can.
func (c *certificates) client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: c.trusted, ServerName: host},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// handshake is one that offers what config says.
func (c *certificates) handshake(t *testing.T, with net.Listener, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	config = config.Clone()
	config.RootCAs, config.ServerName = c.trusted, host
	connection, err := tls.Dial("tcp", with.Addr().String(), config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	return connection.ConnectionState(), connection.Close()
}
