package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// HostGroup is the number of the port for messages between two hosts that concern no single Raft group. No group has
// this number. The host opens the port with Hub.Open and uses AnswerShared and AskShared, and calls about groups that
// one of the hosts lacks. A host of an older weir refuses these messages with ErrNoGroup.
const HostGroup = 1<<16 - 1

// PortConfig configures the port of one group.
type PortConfig struct {
	// Self returns the identity of this node in the group. The port calls it at each handshake, because a node learns
	// its cluster when it joins.
	Self   func() Identity
	Logger *slog.Logger
	// ServesRaft returns an error unless this node may take part in elections and replication; nil: it always may.
	ServesRaft func() error
	// Stops reports whether connections end because nodes stop; nil: never.
	Stops func() bool
}

// Port passes the connections of other nodes to one Raft group of this host, and opens connections to the same group
// on other hosts.
type Port struct {
	tracker // of all open connections, accepted and dialed
	hub     *Hub
	group   uint16
	config  PortConfig
	raft    chan net.Conn
	serve   func(conn net.Conn, from Identity)
	done    chan struct{}

	// answers is the handler of AnswerShared; requests counts the messages that it is answering.
	answers  atomic.Pointer[func(kind byte, body []byte, closed <-chan struct{}) ([]byte, error)]
	requests atomic.Int32
	// onStream is the function of OnStream.
	onStream atomic.Pointer[func()]
	// calls is the handler of AnswerCalls.
	calls atomic.Pointer[callHandler]
}

// NewDialer returns a port that accepts no connections. A node asks other nodes through it before its own port is open.
func NewDialer(hub HubConfig, config PortConfig) *Port {
	return newPort(NewHub(nil, hub), 0, config, nil)
}

func newPort(h *Hub, group uint16, config PortConfig, serve func(conn net.Conn, from Identity)) *Port {
	return &Port{
		tracker: newTracker(), hub: h, group: group, config: config, serve: serve,
		raft: make(chan net.Conn), done: make(chan struct{}),
	}
}

// Addr returns the address of the listener.
func (p *Port) Addr() net.Addr { return p.hub.Addr() }

// Evicted returns the number of connections of the whole host that were evicted during their handshake.
func (p *Port) Evicted() int64 { return p.hub.Evicted() }

// Close closes every connection of the group, and returns when no goroutine of the port runs. The connections of other
// groups stay.
func (p *Port) Close() error {
	err := p.Cut()
	p.tasks.Wait()
	return err
}

// Cut closes every connection of the group without waiting for calls that are being answered, because these may wait
// for other components to close first.
func (p *Port) Cut() error {
	p.hub.remove(p)
	p.end()
	return nil
}

// end closes every connection of the group. The hub may still know the port.
func (p *Port) end() {
	if p.cut() {
		close(p.done)
	}
}

// deliver passes an accepted connection to its service. The port HostGroup has no streams.
func (p *Port) deliver(conn *trackedConn, service Service, from Identity) {
	if p.group == HostGroup && service != CallService {
		conn.Close()
		return
	}
	if service == CallService {
		p.serve(conn, from)
		conn.Close()
		return
	}
	if arrives := p.onStream.Load(); arrives != nil {
		(*arrives)()
	}
	select {
	case p.raft <- conn:
	case <-p.done:
		conn.Close()
	}
}

// OnStream sets a function that the port calls before a stream of another node waits for Streams.Accept.
func (p *Port) OnStream(arrives func()) { p.onStream.Store(&arrives) }

// complain logs an error of a connection to another node, at the rate of the hub.
func (p *Port) complain(what string, node net.Addr, err error) {
	if !brokenOff(err) || !p.stops() {
		p.hub.complain(p.config.Logger, what, node, err)
	}
}

func (p *Port) stops() bool { return p.config.Stops != nil && p.config.Stops() }

// brokenOff reports whether a connection ended without an invalid message from the other side.
func brokenOff(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
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

// Dial opens a connection for a service of the group, and returns the identity of the other node.
func (p *Port) Dial(ctx context.Context, addr string, service Service) (net.Conn, Identity, error) {
	conn, from, err := p.dial(ctx, &p.tracker, addr, service)
	if err != nil {
		return nil, from, err
	}
	return conn, from, nil
}

// dial is Dial for a connection that by tracks.
func (p *Port) dial(ctx context.Context, by *tracker, addr string, service Service) (*trackedConn, Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := p.hub.config.Dialer(ctx, addr)
	if err != nil {
		return nil, Identity{}, err
	}
	tracked, ok := by.track(conn)
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
	if err := p.hub.dialTLS(conn); err != nil {
		return Identity{}, err
	}
	group := p.group
	if service == SharedService {
		group = 0 // of no group
	}
	theirs, err := greet(conn, p.hub.config.Secret, newGreeting(service, group, p.config.Self()))
	from := theirs.self
	if err != nil {
		return Identity{}, explained(err)
	}
	if service == SharedService {
		conn.sharedVersion = theirs.version
		return from, nil // each request names and checks both nodes
	}
	if err := conn.vouched(from.NodeID); err != nil {
		return from, err
	}
	return from, p.judge(service, from)
}
