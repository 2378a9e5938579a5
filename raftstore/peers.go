package raftstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// peers keeps the connections for calls to the other nodes of the configuration,
// and asks each of them once a second how it is.
type peers struct {
	*host
	group groupView

	mu      sync.Mutex
	nodes   map[string]*peerNode // by id
	servers []raft.Server
	stopped bool
	members atomic.Pointer[[]limiter.Member] // as lookAtMembers saw them last
}

// groupView is what the peers need of the group that they are members of.
type groupView interface {
	// servers returns the newest configuration that is known.
	servers() []raft.Server
	// progress returns the last entry applied, and the last that is known to be committed.
	progress() (applied, committed uint64)
	// confirm asks a member for its term whenever wake has a token and a quorum round lacks the
	// member, until ctx ends.
	confirm(ctx context.Context, id string, wake <-chan struct{}, askTerm func(context.Context) (uint64, error))
}

// peerNode is another member.
type peerNode struct {
	id, addr string
	client   *peer.Client  // for operations and orders
	asker    *peer.Client  // for questions: a late answer there must not end the others' wait
	wake     chan struct{} // holds one token: there is a quorum round to answer
	cancel   context.CancelFunc
	heard    heard     // guarded by peers.mu; zero: never
	stopping time.Time // when it said that it stops; guarded by peers.mu; zero: it runs, or was never heard
	bound    int64     // the memory bound that was warned of, if one was
	warned   bool
}

func newPeers(h *host, g groupView) *peers {
	return &peers{host: h, group: g, nodes: map[string]*peerNode{}}
}

func (p *peers) start() { p.tasks.Go(p.run) }

// run follows the configuration until the node closes.
func (p *peers) run() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	for {
		p.follow(p.group.servers())
		select {
		case <-tick.C:
		case <-p.stop:
			return
		}
	}
}

// follow brings the set of peers up to a configuration.
func (p *peers) follow(servers []raft.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.servers = servers
	wanted := map[string]string{}
	for _, s := range servers {
		if string(s.ID) != p.options.NodeID {
			wanted[string(s.ID)] = string(s.Address)
		}
	}
	for id, known := range p.nodes {
		if wanted[id] != known.addr {
			known.end()
			delete(p.nodes, id)
		}
	}
	for id, addr := range wanted {
		if p.nodes[id] == nil {
			p.nodes[id] = p.add(id, addr)
		}
	}
}

func (p *peers) add(id, addr string) *peerNode {
	ctx, cancel := context.WithCancel(p.ctx)
	one := &peerNode{id: id, addr: addr, client: peer.NewClient(p.port, addr, id), asker: peer.NewClient(p.port, addr, id), cancel: cancel, wake: make(chan struct{}, 1)}
	p.tasks.Go(func() { p.poll(ctx, one) })
	p.tasks.Go(func() {
		p.group.confirm(ctx, id, one.wake, func(ctx context.Context) (uint64, error) { return askTerm(ctx, one.asker) })
	})
	return one
}

func (one *peerNode) end() {
	one.cancel()
	one.client.Close()
	one.asker.Close()
}

// poll asks a node how it is until it is no member any more.
func (p *peers) poll(ctx context.Context, one *peerNode) {
	for ctx.Err() == nil {
		asked := time.Now()
		if s, err := ask(ctx, one.asker); err == nil {
			h := p.hears(s, time.Since(asked))
			p.mu.Lock()
			one.heard = h
			one.isBack(s, asked)
			p.mu.Unlock()
			one.compareBounds(p.host, s.MaxMemory)
		}
		timers.Pause(ctx, timers.StatusEvery)
	}
}

// ask returns a node's status.
func ask(ctx context.Context, client *peer.Client) (s status, err error) {
	ctx, cancel := context.WithTimeout(ctx, timers.StatusTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Status, nil)
	if err != nil {
		return s, err
	}
	if err := calls.OutcomeOf(code, answer); err != nil {
		return s, err
	}
	return s, json.Unmarshal(answer, &s)
}

// client returns the connection for calls to a member; nil for this node and
// strangers.
func (p *peers) client(id string) *peer.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.nodes[id]; one != nil {
		return one.client
	}
	return nil
}

// askers returns the connections for questions to the given nodes; it leaves out nodes
// that are not known, and this one.
func (p *peers) askers(ids []string) (clients []*peer.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if one := p.nodes[id]; one != nil {
			clients = append(clients, one.asker)
		}
	}
	return clients
}

// clients returns the connections to a member for questions and for operations; nil for
// this node and strangers.
func (p *peers) clients(id string) (asker, client *peer.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.nodes[id]; one != nil {
		return one.asker, one.client
	}
	return nil, nil
}

// idAt returns the member that should answer at an address.
func (p *peers) idAt(addr string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		if string(s.Address) == addr {
			return string(s.ID)
		}
	}
	return ""
}

// last returns what a member last said; false if it never did.
func (p *peers) last(id string) (heard, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.nodes[id]
	if one == nil || one.heard.at.IsZero() {
		return heard{}, false
	}
	return one.heard, true
}

// without reports whether a member knows a committed configuration newer than that
// of entry since, and id is not in it.
func (p *peers) without(id string, since uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.nodes {
		h := one.heard
		if h.MembersAt > since && len(h.Members) > 0 && !slices.Contains(h.Members, id) {
			return true
		}
	}
	return false
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, one := range p.nodes {
		one.end()
	}
}

// askTerm returns the term a node is in.
func askTerm(ctx context.Context, client *peer.Client) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, timers.StatusTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Term, nil)
	switch {
	case err != nil:
		return 0, err
	case code != calls.Answered || len(answer) != 8:
		return 0, failure.ErrUnavailable
	}
	return binary.LittleEndian.Uint64(answer), nil
}

// wake has members asked for their term, unless that is under way.
func (p *peers) wake(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.nodes {
		if !slices.Contains(ids, one.id) {
			continue
		}
		select {
		case one.wake <- struct{}{}:
		default:
		}
	}
}
