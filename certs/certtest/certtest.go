// Package certtest creates authorities and certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
)

// CA is an authority for the duration of a test.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// File is the path of the authority's certificate.
	File string
}

// NewCA returns an authority with this name.
func NewCA(t testing.TB, name string) *CA {
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	ca := &CA{t: t, cert: cert, key: key, File: filepath.Join(t.TempDir(), "ca.pem")}
	writePEM(t, ca.File, "CERTIFICATE", der)
	return ca
}

// Pool returns a pool that contains the authority.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Issue writes a certificate and its key into a new directory. The certificate is for 127.0.0.1 and for the DNS name
// name, and lasts an hour. change, unless it is nil, may modify the certificate before the authority signs it.
func (ca *CA) Issue(name string, change func(*x509.Certificate)) certs.Files {
	dir := ca.t.TempDir()
	f := certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: ca.File}
	ca.IssueTo(f, name, change)
	return f
}

// IssueTo is Issue with the paths of f. It replaces the files f.Cert and f.Key.
func (ca *CA) IssueTo(f certs.Files, name string, change func(*x509.Certificate)) {
	key := newKey(ca.t)
	template := &x509.Certificate{
		SerialNumber: serial(ca.t), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	require.NoError(ca.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(ca.t, err)
	writePEM(ca.t, f.Key, "PRIVATE KEY", secret)
	writePEM(ca.t, f.Cert, "CERTIFICATE", der)
}

// Expired is a change for Issue: the certificate expired a minute ago.
func Expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

// URI returns a change for Issue that adds a URI name and removes the DNS names.
func URI(uri string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		u, err := url.Parse(uri)
		if err != nil {
			panic(err)
		}
		c.URIs, c.DNSNames = []*url.URL{u}, nil
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func serial(t testing.TB) *big.Int {
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	return n
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
