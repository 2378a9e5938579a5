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
	ErrCertificate = errors.New("no good certificate on the other side")
	ErrOwnRefused  = errors.New("the other side refuses this node's certificate")
	ErrNoTLS       = errors.New("the other side does not speak TLS")
	ErrOtherName   = errors.New("the certificate is another node's")
)

// Certificates make both sides of TLS between nodes: each must show the other a
// certificate of an authority that signs those of nodes.
type Certificates interface {
	NodeServer() *tls.Config
	NodeClient() *tls.Config // for one handshake
}

// IncarnationMark ends the part of a node's id that is the node's own: what is behind
// it tells one life of a node without a disk from the next.
const IncarnationMark = "~"

// Vouches says whether a certificate is that of the node with this id: one of its names
// is the id itself, as a DNS name, or weir://node/<id> as a URI.
func Vouches(cert *x509.Certificate, id string) bool {
	own, _, _ := strings.Cut(id, IncarnationMark)
	uri := (&url.URL{Scheme: "weir", Host: "node", Path: "/" + own}).String()
	return slices.Contains(cert.DNSNames, own) ||
		slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == uri })
}

// aboutCertificates says whether an error is one that only new certificates, or other
// flags, can mend.
func aboutCertificates(err error) bool {
	return slices.ContainsFunc([]error{ErrCertificate, ErrOwnRefused, ErrNoTLS, ErrOtherName},
		func(target error) bool { return errors.Is(err, target) })
}

// names are those of a certificate that may be a node's.
func names(cert *x509.Certificate) string {
	all := slices.Clone(cert.DNSNames)
	for _, u := range cert.URIs {
		all = append(all, u.String())
	}
	return strings.Join(all, ", ")
}

// acceptTLS is the accepting side's handshake, where there are certificates.
func (p *Port) acceptTLS(c *trackedConn) error {
	if p.config.Certificates == nil {
		return nil
	}
	return c.shake(tls.Server(c.raw, p.config.Certificates.NodeServer()))
}

// dialTLS is the dialing side's.
func (p *Port) dialTLS(c *trackedConn) error {
	if p.config.Certificates == nil {
		return nil
	}
	return c.shake(tls.Client(c.raw, p.config.Certificates.NodeClient()))
}

// shake carries out a handshake; the connection speaks TLS from then on.
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

// explained says of an error that comes from the other side what it means: the dialer
// of TLS 1.3 learns what became of its own certificate when it reads first.
func explained(err error) error {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" {
		return fmt.Errorf("%w: %w", ErrOwnRefused, remote.Err)
	}
	return err
}

// mayServe checks the certificate of a node that has said who it is, and then whether it
// may speak here.
func (p *Port) mayServe(c *trackedConn, service Service, from Identity) error {
	if err := c.vouched(from.NodeID); err != nil {
		return err
	}
	return p.judge(service, from)
}

// vouched checks that the certificate shown is that of the node that speaks.
func (c *trackedConn) vouched(id string) error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	if cert := secure.ConnectionState().PeerCertificates[0]; !Vouches(cert, id) {
		return fmt.Errorf("%w: it names %s, the node says it is %q", ErrOtherName, names(cert), id)
	}
	return nil
}
