package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
)

const (
	// handshakeTimeout bounds the handshake on both sides. The handshake takes a few round trips.
	handshakeTimeout = 5 * time.Second
	// MaxHandshakes bounds the connections of a host that have not completed the handshake. It allows a few from every
	// node of a large cluster. One connection more evicts a connection of the address that has the most.
	MaxHandshakes = 64
	// complaintsEvery is the least time between two logged refusals of a host.
	complaintsEvery = time.Second
	// acceptPause is the pause after Accept has failed. The usual cause is a lack of file descriptors, which passes.
	acceptPause = 50 * time.Millisecond
)

// ErrGroupOpen is the error of Hub.Open for a group that has a port.
var ErrGroupOpen = errors.New("this host has a port of this group already")

// HubConfig configures a hub. All groups of the host share it.
type HubConfig struct {
	Secret []byte
	// Certificates enables TLS; nil: connections do not use TLS.
	Certificates Certificates
	Logger       *slog.Logger
	// Dialer opens connections; nil: TCP.
	Dialer func(ctx context.Context, addr string) (net.Conn, error)
}

// Hub accepts the connections of other nodes for all Raft groups of a host. After the handshake it passes each
// connection to the port of its group.
type Hub struct {
	tracker // of accepted connections whose group is not known yet
	config  HubConfig
	listen  net.Listener // nil: this hub only dials
	done    chan struct{}
	life    context.Context // ends with the hub
	end     context.CancelFunc

	handshakes *connlimit.Table
	evicted    atomic.Int64 // handshakes that were evicted

	groups sync.Mutex
	ports  map[uint16]*Port // by group; guarded by groups, and nil once the hub is closed

	shared sharedLinks // that this host has opened

	bundlePatience time.Duration // the constant, except in tests

	telling sync.Mutex
	// The times of the last logged refusal and of the last logged connection that broke off; guarded by telling.
	toldRefusal, toldBroken time.Time
}

// NewHub serves a listener, and owns it from then on. It refuses the connections of a group until Open has been
// called for the group. If listen is nil, the hub accepts no connections.
func NewHub(listen net.Listener, config HubConfig) *Hub {
	if config.Dialer == nil {
		config.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	h := &Hub{
		tracker: newTracker(), config: config, listen: listen, done: make(chan struct{}), ports: map[uint16]*Port{},
		bundlePatience: bundlePatience,
	}
	h.life, h.end = context.WithCancel(context.Background())
	h.shared.byAddr, h.shared.unshared = map[string]*sharedDial{}, map[string]time.Time{}
	h.handshakes = connlimit.New(MaxHandshakes, 0, &h.evicted)
	if listen != nil {
		h.tasks.Go(h.accept)
	}
	return h
}

// Open returns a port of a group. The port calls serve with each connection for calls, in a new goroutine, and closes
// the connection when serve returns. After the port is closed, Open can be called for the same group again.
func (h *Hub) Open(group uint16, config PortConfig, serve func(conn net.Conn, from Identity)) (*Port, error) {
	h.groups.Lock()
	defer h.groups.Unlock()
	switch {
	case h.ports == nil:
		return nil, net.ErrClosed
	case h.ports[group] != nil:
		return nil, fmt.Errorf("%w: %d", ErrGroupOpen, group)
	}
	p := newPort(h, group, config, serve)
	h.ports[group] = p
	return p, nil
}

// Addr returns the address of the listener.
func (h *Hub) Addr() net.Addr { return h.listen.Addr() }

// Evicted returns the number of connections that were evicted during their handshake.
func (h *Hub) Evicted() int64 { return h.evicted.Load() }

// Close closes the listener, every port and every connection. It returns when no goroutine of the hub or of a port
// runs.
func (h *Hub) Close() error {
	err := h.Cut()
	h.tasks.Wait()
	return err
}

// Cut closes what Close closes, without waiting for calls that are being answered.
func (h *Hub) Cut() error {
	h.groups.Lock()
	ports := h.ports
	h.ports = nil
	h.groups.Unlock()
	if ports == nil {
		return nil
	}
	close(h.done)
	h.end()
	h.cut()
	for _, p := range ports {
		p.end()
	}
	if h.listen == nil {
		return nil
	}
	return h.listen.Close()
}

// remove makes the hub refuse the connections of a port's group.
func (h *Hub) remove(p *Port) {
	h.groups.Lock()
	defer h.groups.Unlock()
	if h.ports[p.group] == p {
		delete(h.ports, p.group)
	}
}

func (h *Hub) accept() {
	for {
		conn, err := h.listen.Accept()
		if err != nil {
			select {
			case <-h.done:
				return
			case <-time.After(acceptPause):
				continue
			}
		}
		slot, err := h.handshakes.Admit(connlimit.SourceOf(conn.RemoteAddr().String()), func() { conn.Close() })
		if err != nil { // all MaxHandshakes dialers have just proved that they know the secret
			conn.Close()
			continue
		}
		h.tasks.Go(func() { h.welcome(conn, slot) })
	}
}

// welcome carries out the handshake of an accepted connection and passes the connection to the port of its group.
func (h *Hub) welcome(raw net.Conn, handshake *connlimit.Slot) {
	defer handshake.Release()
	conn, ok := h.track(raw)
	if !ok {
		return
	}
	raw.SetDeadline(time.Now().Add(handshakeTimeout))
	port, theirs, err := h.meet(conn, handshake)
	handshake.Release()
	if port != nil {
		defer port.tasks.Done()
	}
	if err != nil {
		h.refused(port, raw.RemoteAddr(), err)
		conn.Close()
		return
	}
	raw.SetDeadline(time.Time{})
	if theirs.service == SharedService {
		h.serveShared(conn)
		return
	}
	port.deliver(conn, theirs.service, theirs.self)
}

// meet carries out the handshake, and returns the greeting of the dialer and the port of its group. The port is nil if
// the handshake did not get as far, or if this host does not have the group. A connection cannot be evicted any more
// once the dialer has proved that it knows the secret.
func (h *Hub) meet(conn *trackedConn, handshake *connlimit.Slot) (port *Port, theirs greeting, err error) {
	if err := h.acceptTLS(conn); err != nil {
		return nil, theirs, err
	}
	theirs, err = receive(conn, h.config.Secret, func(theirs greeting) (self Identity, verdict error) {
		handshake.Begin()
		if theirs.service == SharedService {
			return self, conn.vouched(theirs.self.NodeID) // each request names and checks both nodes
		}
		if port = h.portOf(theirs.group, conn); port != nil {
			self = port.config.Self()
		}
		if err := conn.vouched(theirs.self.NodeID); err != nil {
			return self, err
		}
		if port == nil {
			return self, fmt.Errorf("%w %d", ErrNoGroup, theirs.group)
		}
		return self, port.judge(theirs.service, theirs.self)
	})
	return port, theirs, err
}

// portOf returns the port of a group, which tracks the connection from then on. It returns nil if this host does not
// have the group. The caller calls tasks.Done of the port when the connection is closed.
func (h *Hub) portOf(group uint16, conn *trackedConn) *Port {
	h.groups.Lock()
	p := h.ports[group]
	h.groups.Unlock()
	if p == nil || !p.adopt(conn) {
		return nil
	}
	return p
}

// refused logs the error of a handshake. port is the port of its group, or nil if the group is not known. A group that
// this host does not have is normal while the groups of a host start and close, and the dialer tries again.
func (h *Hub) refused(port *Port, node net.Addr, err error) {
	const what = "a connection to the inter-node port was refused"
	switch {
	case errors.Is(err, ErrNoGroup):
		h.config.Logger.Debug(what, "node", node.String(), "error", err)
	case port != nil:
		port.complain(what, node, err)
	case !brokenOff(err) || !h.stops():
		h.complain(h.config.Logger, what, node, err)
	}
}

// stops reports whether connections end because this host stops, or because nodes of some group stop.
func (h *Hub) stops() bool {
	select {
	case <-h.done:
		return true
	default:
	}
	h.groups.Lock()
	ports := make([]*Port, 0, len(h.ports))
	for _, p := range h.ports {
		ports = append(ports, p)
	}
	h.groups.Unlock()
	for _, p := range ports { // without the lock, because a port asks its group
		if p.stops() {
			return true
		}
	}
	return false
}

// complain logs an error of a connection to another node, at most once in complaintsEvery for each level and for all
// groups. A connection that broke off is information: the node at its other end may have stopped.
func (h *Hub) complain(log *slog.Logger, what string, node net.Addr, err error) {
	level, told := slog.LevelWarn, &h.toldRefusal
	if brokenOff(err) {
		level, told = slog.LevelInfo, &h.toldBroken
	}
	h.telling.Lock()
	defer h.telling.Unlock()
	if time.Since(*told) < complaintsEvery {
		return
	}
	*told = time.Now()
	log.Log(context.Background(), level, what, "node", node.String(), "error", err)
}
