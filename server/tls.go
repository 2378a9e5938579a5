package server

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
)

// plainReply answers a client that sends anything but TLS to a TLS port.
const plainReply = "-ERR this port takes TLS only, as in: redis-cli --tls\r\n"

// ServeTLS is Serve for TLS clients. If config requires client certificates, protected mode requires no password of
// them.
func (s *Server) ServeTLS(ln net.Listener, config *tls.Config) error {
	known := config.ClientAuth == tls.RequireAndVerifyClientCert
	return s.accept(ln, func(nc net.Conn) {
		switch {
		case !known && s.Protects(nc):
			s.Wire.Denied.Add(1)
			_ = nc.Close()
		default:
			slot, ok := s.handshakes.begin(nc)
			if !ok {
				_ = nc.Close()
				return
			}
			keepAlive(nc)
			go s.shake(nc, slot, config)
		}
	})
}

// shake performs a handshake, then starts serving the client. It runs on its own goroutine, which handshakes.running
// counts.
func (s *Server) shake(nc net.Conn, slot *connlimit.Slot, config *tls.Config) {
	defer s.handshakes.running.Done()
	secure := tls.Server(nc, config)
	_ = nc.SetDeadline(time.Now().Add(handshakeTimeout))
	err := secure.Handshake()
	s.handshakes.end(nc, slot)
	if err != nil {
		s.refuseHandshake(nc, err)
		return
	}
	_ = nc.SetDeadline(time.Time{})
	s.serve(secureConn{secure})
}

func (s *Server) refuseHandshake(nc net.Conn, err error) {
	s.Wire.BadHandshakes.Add(1)
	s.Log.Debug("TLS handshake failed", "addr", nc.RemoteAddr(), "err", err)
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil {
		turnAway(nc, plainReply)
		return
	}
	_ = nc.Close()
}

// secureConn closes its socket at once. tls.Conn.Close would first send close_notify and could block on a peer that
// does not read, even in the goroutine that closes all connections. A caller that may wait calls CloseWrite first.
type secureConn struct{ *tls.Conn }

func (c secureConn) Close() error { return c.NetConn().Close() }
