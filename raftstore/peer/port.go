package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
)

const (
	// handshakeTimeout bounds the handshake on both sides. The handshake takes a few round trips.
	handshakeTimeout = 5 * time.Second
	// MaxHandshakes bounds the connections that have not completed the handshake. It allows a few from every node of a
	// large cluster. One more connection evicts another from the address that has the most.
	MaxHandshakes = 64
	// complaintsEvery is the least time between two logged refusals.
	complaintsEvery = time.Second
	// acceptPause is the pause after Accept has failed. The usual cause is a lack of file descriptors, which passes.
	acceptPause = 50 * time.Millisecond
)

// Config configures a port.
type Config struct {
	Secret []byte
	// Certificates enables TLS; nil: connections do not use TLS.
	Certificates Certificates
	// Self returns the identity of this node. The port calls it at each handshake, because a node learns its cluster
	// when it joins.
	Self   func() Identity
	Logger *slog.Logger
	// ServesRaft returns an error unless this node may take part in elections and replication; nil: it always may.
	ServesRaft func() error
	// Stops reports whether connections end because nodes stop; nil: never.
	Stops func() bool
	// Dialer opens connections; nil: TCP.
	Dialer func(ctx context.Context, addr string) (net.Conn, error)
}

// Port accepts connections from other nodes and opens connections to them.
type Port struct {
	config Config
	listen net.Listener
	raft   chan net.Conn
	serve  func(conn net.Conn, from Identity)
	done   chan struct{}
	tasks  sync.WaitGroup

	handshakes *connlimit.Table
	evicted    atomic.Int64 // handshakes that were evicted

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{} // all open connections, accepted and dialed
	told   time.Time             // time of the last logged refusal
}

// NewPort serves a listener, and owns it from then on. It calls serve with each connection for calls, in a new
// goroutine, and closes the connection when serve returns.
func NewPort(listen net.Listener, config Config, serve func(conn net.Conn, from Identity)) *Port {
	if config.Dialer == nil {
		config.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	p := &Port{
		config: config, listen: listen, serve: serve,
		raft:  make(chan net.Conn),
		done:  make(chan struct{}),
		conns: map[net.Conn]struct{}{},
	}
	p.handshakes = connlimit.New(MaxHandshakes, 0, &p.evicted)
	p.tasks.Go(p.accept)
	return p
}

// Addr returns the address of the listener.
func (p *Port) Addr() net.Addr { return p.listen.Addr() }

// Evicted returns the number of connections that were evicted during their handshake.
func (p *Port) Evicted() int64 { return p.evicted.Load() }

// Close closes every connection, and returns when no goroutine of the port runs.
func (p *Port) Close() error {
	err := p.Cut()
	p.tasks.Wait()
	return err
}

// Cut closes every connection without waiting for calls that are being answered, because these may wait for other
// components to close first.
func (p *Port) Cut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	close(p.done)
	for conn := range p.conns {
		conn.Close()
	}
	return p.listen.Close()
}

func (p *Port) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			select {
			case <-p.done:
				return
			case <-time.After(acceptPause):
				continue
			}
		}
		slot, err := p.handshakes.Admit(connlimit.SourceOf(conn.RemoteAddr().String()), func() { conn.Close() })
		if err != nil { // does not happen, because every handshake can be evicted
			conn.Close()
			continue
		}
		p.tasks.Go(func() { p.welcome(conn, slot) })
	}
}

// complain logs an error of a connection to another node, at most once in complaintsEvery.
func (p *Port) complain(what string, node net.Addr, err error) {
	if brokenOff(err) && p.config.Stops != nil && p.config.Stops() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.told) < complaintsEvery {
		return
	}
	p.told = time.Now()
	p.config.Logger.Warn(what, "node", node.String(), "error", err)
}

// brokenOff reports whether a connection ended without an invalid message from the other side.
func brokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err,
		syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// welcome carries out the handshake of an accepted connection and passes the connection to its service.
func (p *Port) welcome(raw net.Conn, handshake *connlimit.Slot) {
	defer handshake.Release()
	conn, ok := p.track(raw)
	if !ok {
		return
	}
	raw.SetDeadline(time.Now().Add(handshakeTimeout))
	service, from, err := p.meet(conn, handshake)
	handshake.Release()
	if err != nil {
		p.complain("a connection to the inter-node port was refused", raw.RemoteAddr(), err)
		conn.Close()
		return
	}
	raw.SetDeadline(time.Time{})
	if service == CallService {
		p.serve(conn, from)
		conn.Close()
		return
	}
	select {
	case p.raft <- conn:
	case <-p.done:
		conn.Close()
	}
}

// meet carries out the handshake and returns the service and the identity of the dialer. A connection cannot be
// evicted any more once the dialer has proved that it knows the secret.
func (p *Port) meet(conn *trackedConn, handshake *connlimit.Slot) (Service, Identity, error) {
	if err := p.acceptTLS(conn); err != nil {
		return 0, Identity{}, err
	}
	return receive(conn, p.config.Secret, p.config.Self(), func(service Service, from Identity) error {
		handshake.Begin()
		return p.mayServe(conn, service, from)
	})
}

// judge returns an error unless the other node may use the service.
func (p *Port) judge(service Service, from Identity) error {
	self := p.config.Self()
	switch {
	case service != RaftService && service != CallService:
		return fmt.Errorf("%w (service %q)", ErrNotWeir, byte(service))
	case from.NodeID == self.NodeID:
		return fmt.Errorf("%w %q", ErrSameNode, from.NodeID)
	case from.ClusterID != "" && self.ClusterID != "" && from.ClusterID != self.ClusterID:
		return fmt.Errorf("%w (%s, this one is %s)", ErrCluster, from.ClusterID, self.ClusterID)
	case service == RaftService && p.config.ServesRaft != nil:
		return p.config.ServesRaft()
	}
	return nil
}

// Dial opens a connection for a service, and returns the identity of the other node.
func (p *Port) Dial(ctx context.Context, addr string, service Service) (net.Conn, Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := p.config.Dialer(ctx, addr)
	if err != nil {
		return nil, Identity{}, err
	}
	tracked, ok := p.track(conn)
	if !ok {
		return nil, Identity{}, net.ErrClosed
	}
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	from, err := p.present(tracked, service)
	if err != nil {
		if aboutCertificates(err) {
			p.complain("the TLS handshake with another node failed", conn.RemoteAddr(), err)
		}
		return nil, Identity{}, errors.Join(fmt.Errorf("node at %s: %w", addr, err), tracked.Close())
	}
	conn.SetDeadline(time.Time{})
	return tracked, from, nil
}

// present carries out the dialer's handshake and checks the identity of the other node.
func (p *Port) present(conn *trackedConn, service Service) (Identity, error) {
	if err := p.dialTLS(conn); err != nil {
		return Identity{}, err
	}
	from, err := greet(conn, p.config.Secret, service, p.config.Self())
	if err != nil {
		return Identity{}, explained(err)
	}
	return from, p.mayServe(conn, service, from)
}

// track adds a connection to those that Close closes. It reports false if the port is already closed.
func (p *Port) track(conn net.Conn) (*trackedConn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return nil, false
	}
	p.conns[conn] = struct{}{}
	return &trackedConn{Conn: conn, raw: conn, port: p}, true
}

// trackedConn removes itself from the port when it is closed. It closes the TCP connection without the closing
// message of TLS, because a peer that does not read would delay that message.
type trackedConn struct {
	net.Conn // raw, or TLS over it
	raw      net.Conn
	port     *Port
}

func (c *trackedConn) Close() error {
	c.port.mu.Lock()
	delete(c.port.conns, c.raw)
	c.port.mu.Unlock()
	return c.raw.Close()
}
