package server

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/resp/resptest"
)

// replayConn is a client without a socket that repeats one pipeline. It discards the replies unless written is set.
type replayConn struct {
	net.Conn
	pipeline string
	at       int // offset in pipeline
	rest     int // pipelines that remain
	largest  int // largest write
	written  *strings.Builder
}

func (c *replayConn) Read(b []byte) (int, error) {
	if c.rest == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.pipeline[c.at:])
	if c.at += n; c.at == len(c.pipeline) {
		c.at = 0
		c.rest--
	}
	return n, nil
}

func (c *replayConn) Write(b []byte) (int, error) {
	c.largest = max(c.largest, len(b))
	if c.written != nil {
		c.written.Write(b)
	}
	return len(b), nil
}

func (c *replayConn) SetReadDeadline(time.Time) error  { return nil }
func (c *replayConn) SetWriteDeadline(time.Time) error { return nil }
func (c *replayConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *replayConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *replayConn) Close() error                     { return nil }

// BenchmarkConnection measures the server's own cost of a decision in a pipeline of 128, without the kernel and the
// engine.
func BenchmarkConnection(b *testing.B) { benchmarkConnection(b, 128, nil) }

func benchmarkConnection(b *testing.B, depth int, tracer commands.Tracer) {
	srv, err := New(Config{Tracer: tracer}, &wireLimiter{})
	if err != nil {
		b.Fatal(err)
	}
	command := resptest.Multibulk("RL.TOKENBUCKET", "key:000000012345", "100/s", "100")
	nc := &replayConn{pipeline: strings.Repeat(command, depth), rest: b.N/depth + 1}
	c := newConn(srv, nc)
	if err := srv.enroll(c); err != nil {
		b.Fatal(err)
	}
	c.sess = commands.NewSession(srv.Shared, c, &c.replies)
	b.ReportAllocs()
	b.ResetTimer()
	c.serve()
	if nc.largest < depth {
		b.Fatal("it does not answer")
	}
	if err := srv.Close(); err != nil {
		b.Fatal(err)
	}
}
