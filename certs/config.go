package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// errNoCertificate: the other side has shown none, which TLS itself rules out.
var errNoCertificate = errors.New("the other side shows no certificate")

// Server is the side that clients connect to, TLS 1.2 or later. auth says whether
// they must show a certificate of the authorities.
func (s *Store) Server(auth tls.ClientAuthType) *tls.Config {
	return s.serving(func(m *material) *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*m.cert}, ClientAuth: auth, ClientCAs: m.trust,
			// A ticket would let a client in by a certificate that it has shown earlier, to
			// authorities that may have changed since.
			SessionTicketsDisabled: auth != tls.NoClientCert,
		}
	}, auth)
}

// NodeServer is the accepting side between nodes: TLS 1.3, certificates both ways.
func (s *Store) NodeServer() *tls.Config {
	return s.serving(func(m *material) *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*m.cert}, ClientCAs: m.trust,
			ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
		}
	}, tls.RequireAndVerifyClientCert)
}

// serving asks for the configuration at each handshake.
func (s *Store) serving(build func(*material) *tls.Config, auth tls.ClientAuthType) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: auth,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return build(s.now()), nil },
	}
}

// NodeClient is the dialing side between nodes, good for one handshake. It checks that
// the authorities vouch for the other side, and not its name: nodes move from address
// to address, and who answers is checked by node id.
func (s *Store) NodeClient() *tls.Config {
	m := s.now()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*m.cert},
		InsecureSkipVerify: true, // replaced by what follows, which leaves out the name only
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyChain(state.PeerCertificates, m.trust)
		},
	}
}

func verifyChain(shown []*x509.Certificate, trust *x509.CertPool) error {
	if len(shown) == 0 {
		return errNoCertificate
	}
	between := x509.NewCertPool()
	for _, cert := range shown[1:] {
		between.AddCert(cert)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{
		Roots: trust, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}
