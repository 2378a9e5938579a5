package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Errors of TLS between nodes.
var (
	ErrCertificate = errors.New("the peer has no valid certificate")
	ErrOwnRefused  = errors.New("the peer rejects this node's certificate")
	ErrNoTLS       = errors.New("the peer does not speak TLS")
	ErrOtherName   = errors.New("the certificate belongs to another node")
)

// Certificates provides the TLS configurations between nodes. Each side must show a certificate that the authority of
// node certificates has signed.
type Certificates interface {
	NodeServer() *tls.Config
	NodeClient() *tls.Config // for one handshake
}

// IncarnationMark separates the given id of a node from the suffix of a later incarnation.
const IncarnationMark = "~"

// CertifiesNode reports whether a certificate belongs to the node with this id. One of its names must be the given id
// as a DNS name, or weir://node/<id> as a URI.
func CertifiesNode(cert *x509.Certificate, id string) bool {
	own, _, _ := strings.Cut(id, IncarnationMark)
	uri := (&url.URL{Scheme: "weir", Host: "node", Path: "/" + own}).String()
	return slices.Contains(cert.DNSNames, own) ||
		slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == uri })
}

// aboutCertificates reports whether only new certificates, or other flags, can resolve an error.
func aboutCertificates(err error) bool {
	return slices.ContainsFunc([]error{ErrCertificate, ErrOwnRefused, ErrNoTLS, ErrOtherName},
		func(target error) bool { return errors.Is(err, target) })
}

// names returns the names in a certificate that may identify a node.
func names(cert *x509.Certificate) string {
	all := slices.Clone(cert.DNSNames)
	for _, u := range cert.URIs {
		all = append(all, u.String())
	}
	return strings.Join(all, ", ")
}

// acceptTLS carries out the TLS handshake of the accepting side, if the hub has certificates.
func (h *Hub) acceptTLS(c *trackedConn) error {
	if h.config.Certificates == nil {
		return nil
	}
	return c.shake(tls.Server(c.raw, h.config.Certificates.NodeServer()))
}

// dialTLS carries out the TLS handshake of the dialing side, if the hub has certificates.
func (h *Hub) dialTLS(c *trackedConn) error {
	if h.config.Certificates == nil {
		return nil
	}
	return c.shake(tls.Client(c.raw, h.config.Certificates.NodeClient()))
}

// shake carries out a TLS handshake. The connection uses TLS from then on.
func (c *trackedConn) shake(secure *tls.Conn) error {
	err := secure.Handshake()
	c.Conn = secure
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		return fmt.Errorf("%w (%w)", ErrNoTLS, err)
	case err != nil:
		return explained(fmt.Errorf("%w: %w", ErrCertificate, err))
	}
	return nil
}

// explained adds ErrOwnRefused to a TLS error that the other side has sent. A dialer of TLS 1.3 learns only at its
// first read that its certificate was refused.
func explained(err error) error {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" {
		return fmt.Errorf("%w: %w", ErrOwnRefused, remote.Err)
	}
	return err
}

// vouched checks that the certificate of the other side names the given node. It accepts every node on a connection
// without TLS.
func (c *trackedConn) vouched(id string) error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	if cert := secure.ConnectionState().PeerCertificates[0]; !CertifiesNode(cert, id) {
		return fmt.Errorf("%w: it names %s, the node says it is %q", ErrOtherName, names(cert), id)
	}
	return nil
}
