package httpapi

import (
	"crypto/tls"
	"io"
	"net"
	"time"
)

// respOnHTTP answers a Redis client on the HTTP port. It reveals nothing about the server.
const respOnHTTP = "-ERR this port takes HTTP. Redis clients have a port of their own: --listen, 127.0.0.1:6380 " +
	"unless set\r\n"

// wrongPortTimeout bounds the answer to a Redis client. It fits the buffer of every socket.
const wrongPortTimeout = time.Second

// webListener answers Redis clients with an error that they understand. net/http would answer 400 in HTTP.
type webListener struct{ net.Listener }

// Accept returns the next connection.
func (l webListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if _, secure := nc.(*tls.Conn); err != nil || secure {
		return nc, err
	}
	return &webConn{Conn: nc}, nil
}

// webConn looks at the first byte that a client sends. A RESP array begins with one that no HTTP method has.
type webConn struct {
	net.Conn
	begun bool
}

// Read reads from the connection. It ends the connection of a Redis client.
func (c *webConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 || c.begun {
		return n, err
	}
	if c.begun = true; b[0] != '*' {
		return n, err
	}
	_ = c.SetWriteDeadline(time.Now().Add(wrongPortTimeout))
	_, _ = io.WriteString(c.Conn, respOnHTTP)
	return 0, io.EOF
}
