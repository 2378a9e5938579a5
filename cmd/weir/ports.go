package main

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"slices"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/server"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/httpapi"
)

// ports are the listeners for clients, probes and Envoys. A missing listener is nil.
type ports struct {
	plain, secure, web net.Listener
	rls                net.Listener
	socket             net.Listener // Unix sockets beside plain, web and rls
	webSocket          net.Listener
	rlsSocket          net.Listener
	cert               *certs.Store
	auth               tls.ClientAuthType
	httpTLS, rlsTLS    bool
	logins             bool // clients must authenticate
	log                *slog.Logger
}

// open opens the listeners before any slow step, so that a port in use is reported at once.
func (s *serveCmd) open(log *slog.Logger, logins bool) (p *ports, err error) {
	if s.Listen == "" && s.TLSListen == "" {
		return nil, errors.New("--listen must not be empty without --tls-listen")
	}
	p = &ports{auth: s.clientAuth(), httpTLS: s.HTTPTLS, rlsTLS: s.RLSTLS, logins: logins, log: log}
	if p.cert, err = s.certificate(log); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		flag, addr string
		known      bool // clients have presented a certificate
		to         *net.Listener
	}{
		{"--listen", s.Listen, false, &p.plain},
		{"--tls-listen", s.TLSListen, p.auth == tls.RequireAndVerifyClientCert, &p.secure},
		{"--http", s.HTTP, false, &p.web},
		{"--rls", s.RLS, s.RLSTLS && p.auth == tls.RequireAndVerifyClientCert, &p.rls},
	} {
		if one.addr == "" {
			continue
		}
		if err = listener.CheckExposure(one.flag, one.addr, logins, s.ProtectedMode && !one.known); err == nil {
			*one.to, err = listener.Listen(one.flag, one.addr)
		}
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	if err := p.openSockets(&s.socketFlags); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// envoys returns the rate limit service. The service may exist without a listener.
func (p *ports) envoys(srv *server.Server) *envoyrls.Server {
	if !p.rlsTLS {
		return envoyrls.New(srv.Service, nil)
	}
	return envoyrls.New(srv.Service, p.cert.Server(p.auth))
}

// serve starts to accept on all listeners. The channel receives the end of each.
func (p *ports) serve(srv *server.Server, beside *httpapi.Server, envoys *envoyrls.Server) <-chan error {
	failed := make(chan error, 7)
	for _, ln := range present(p.plain, p.socket) {
		go func() { failed <- srv.Serve(ln) }()
	}
	if p.secure != nil {
		go func() { failed <- srv.ServeTLS(p.secure, p.cert.Server(p.auth)) }()
	}
	if p.web != nil {
		go func() { failed <- beside.Serve(p.webTLS(p.web)) }()
	}
	for _, ln := range present(p.webSocket) {
		go func() { failed <- beside.Serve(ln) }()
	}
	for _, ln := range present(p.rls, p.rlsSocket) {
		go func() { failed <- envoys.Serve(ln) }()
	}
	return failed
}

func (p *ports) close() (err error) {
	for _, ln := range present(p.plain, p.secure, p.web, p.rls, p.socket, p.webSocket, p.rlsSocket) {
		err = errors.Join(err, ln.Close())
	}
	return err
}

// present returns the listeners that are there.
func present(all ...net.Listener) []net.Listener {
	return slices.DeleteFunc(all, func(ln net.Listener) bool { return ln == nil })
}

// reload reads the certificate again.
func (p *ports) reload() {
	if p.cert == nil {
		return
	}
	if err := p.cert.Reload(); err != nil {
		p.log.Error("the new certificate cannot be used; the previous one stays in use", "error", err)
		return
	}
	p.log.Info("certificate reloaded", "expires", p.cert.Leaf().NotAfter)
}

// clients returns the address that clients are told: the TLS address, if there is a TLS port.
func (p *ports) clients() net.Addr {
	if p.secure != nil {
		return p.secure.Addr()
	}
	return p.plain.Addr()
}

// connect returns a command line that reaches the server from this machine.
func (p *ports) connect() string {
	if p.plain == nil {
		return listener.HowToConnect(p.secure.Addr(), p.logins, true)
	}
	return listener.HowToConnect(p.plain.Addr(), p.logins, false)
}

func (p *ports) webURL() string {
	switch {
	case p.web == nil:
		return ""
	case p.httpTLS:
		return "https://" + addrOf(p.web)
	}
	return "http://" + addrOf(p.web)
}

// pageURL returns the URL of the status page for someone who can reach a node's port for clients. It returns "" if they
// cannot reach the page. A page on all addresses has the host of the client port. A page on loopback counts only if the
// client port is on loopback too.
func pageURL(web, clients string) string {
	u, err := url.Parse(web)
	if err != nil || u.Host == "" {
		return ""
	}
	host, _, err := net.SplitHostPort(clients)
	if err != nil {
		return ""
	}
	switch ip := net.ParseIP(u.Hostname()); {
	case ip == nil:
		return ""
	case ip.IsUnspecified() && !net.ParseIP(host).IsUnspecified():
		u.Host = net.JoinHostPort(host, u.Port())
	case ip.IsUnspecified(), ip.IsLoopback() && !listener.IsLoopback(clients):
		return ""
	}
	return u.String()
}

// addrOf returns the address of a listener, or "".
func addrOf(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}
