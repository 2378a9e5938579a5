package helm

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const password = "of-the-user-default"

// secretsOf returns the Secrets that the examples name. The certificates have the names that the documents require,
// and 127.0.0.1 for the Service on this machine.
func secretsOf(t *testing.T, o *objects) map[string]map[string]string {
	t.Helper()
	var nodes []*url.URL
	for i := range int(*o.set.Spec.Replicas) {
		nodes = append(nodes, &url.URL{Scheme: "weir", Host: "node", Path: "/" + podName(o, i)})
	}
	return map[string]map[string]string{
		"weir": {"password": password, "cluster": "of-the-cluster"},
		"weir-users": {"users": fmt.Sprintf("user app on #%x ~app:* +@decide +@connection\n",
			sha256.Sum256([]byte("of-the-app")))},
		"weir-tls": certificate(t, &x509.Certificate{DNSNames: []string{release + "." + namespace + ".svc"},
			IPAddresses: []net.IP{{127, 0, 0, 1}}}),
		"weir-node-tls": certificate(t, &x509.Certificate{URIs: nodes}),
	}
}

// certificate returns a Secret of type kubernetes.io/tls with ca.crt, as cert-manager creates it.
func certificate(t *testing.T, names *x509.Certificate) map[string]string {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		return k
	}
	authority, own := key(), key()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	names.SerialNumber, names.NotBefore, names.NotAfter = big.NewInt(2), ca.NotBefore, ca.NotAfter
	names.KeyUsage = x509.KeyUsageDigitalSignature
	names.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &authority.PublicKey, authority)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, names, ca, &own.PublicKey, authority)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	text := func(kind string, der []byte) string {
		var b bytes.Buffer
		require.NoError(t, pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}))
		return b.String()
	}
	return map[string]string{"tls.crt": text("CERTIFICATE", der), "tls.key": text("PRIVATE KEY", keyDER),
		"ca.crt": text("CERTIFICATE", caDER)}
}
