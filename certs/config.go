package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// errNoCertificate: the peer presented no certificate. TLS itself prevents this.
var errNoCertificate = errors.New("the peer presented no certificate")

// Server returns the configuration for client connections, TLS 1.2 or later. auth selects whether clients must present
// a certificate of the authorities.
func (s *Store) Server(auth tls.ClientAuthType) *tls.Config {
	return s.serving(func(m *material) *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*m.cert}, ClientAuth: auth,
			ClientCAs: m.trust,
			// A session ticket would admit a client by a certificate that it presented earlier, although the
			// authorities may have changed since.
			SessionTicketsDisabled: auth != tls.NoClientCert,
		}
	}, auth)
}

// NodeServer returns the configuration of the accepting side between nodes: TLS 1.3 with mutual authentication.
func (s *Store) NodeServer() *tls.Config {
	return s.serving(func(m *material) *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*m.cert}, ClientCAs: m.trust,
			ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
		}
	}, tls.RequireAndVerifyClientCert)
}

// serving returns a configuration that uses the current certificate at each handshake.
func (s *Store) serving(build func(*material) *tls.Config, auth tls.ClientAuthType) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: auth,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return build(s.now()), nil },
	}
}

// NodeClient returns the configuration of the dialing side between nodes, for one handshake. It verifies the
// certificate chain and not the name, because nodes change their addresses. Package raftstore/peer verifies the node
// id.
func (s *Store) NodeClient() *tls.Config {
	m := s.now()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*m.cert},
		InsecureSkipVerify: true, // VerifyConnection replaces the verification and omits only the name
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
