package host

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Peers keeps the connections for calls to the other nodes of the configuration, and asks each of them once a second
// for its status.
type Peers struct {
	of   *Group
	raft Consensus

	mu       sync.Mutex
	Nodes    map[string]*Peer // by id
	Servers  []raft.Server
	stopped  bool
	stranger Status                           // of a node that is no member here, heard last; see HearStranger
	Members  atomic.Pointer[[]limiter.Member] // the result of the last LookAtMembers
}

// Consensus tells Peers about the Raft group.
type Consensus interface {
	// Servers returns the newest configuration that is known.
	Servers() []raft.Server
	// Progress returns the last entry applied, and the last entry known to be committed.
	Progress() (applied, committed uint64)
	// AskTerm asks a member for its term while a quorum round lacks its answer, until ctx ends.
	AskTerm(ctx context.Context, id string, ask func(context.Context) (uint64, error))
}

// Peer is another member of the cluster.
type Peer struct {
	ID, addr string
	client   *peer.Client // for operations and orders
	asker    *peer.Client // for questions: a late answer to a question must not end the wait of operations
	ctx      context.Context
	cancel   context.CancelFunc
	asked    time.Time      // when it was asked for its status last; guarded by Peers.mu
	polling  timers.Single  // asks it for its status
	terms    *timers.Worker // asks it for its term
	Heard    Heard          // guarded by Peers.mu; zero: never
	Stopping time.Time      // when it announced its stop; guarded by Peers.mu; zero: it runs, or was never heard
	bound    int64          // the memory bound of the last warning
	warned   bool
}

// NewPeers returns the peers of a group. It opens no connection before Start.
func NewPeers(g *Group, c Consensus) *Peers {
	return &Peers{of: g, raft: c, Nodes: map[string]*Peer{}}
}

// follow adjusts the set of peers to a configuration, and reports whether there are new ones.
func (p *Peers) follow(servers []raft.Server) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.Servers = servers
	wanted := map[string]string{}
	for _, s := range servers {
		if string(s.ID) != p.of.Options.NodeID {
			wanted[string(s.ID)] = string(s.Address)
		}
	}
	for id, known := range p.Nodes {
		if wanted[id] != known.addr {
			known.end()
			delete(p.Nodes, id)
		}
	}
	for id, addr := range wanted {
		if p.Nodes[id] == nil {
			p.Nodes[id] = p.add(id, addr)
			p.Nodes[id].terms.Once() // a quorum round may have begun before
			news = true
		}
	}
	return news
}

func (p *Peers) add(id, addr string) *Peer {
	port := p.of.Port
	one := &Peer{ID: id, addr: addr, client: peer.NewClient(port, addr, id), asker: peer.NewAsker(port, addr, id)}
	one.ctx, one.cancel = context.WithCancel(p.of.Ctx)
	one.terms = timers.NewWorker(p.of.Go, one.ctx.Done(), func() {
		p.raft.AskTerm(one.ctx, id, func(ctx context.Context) (uint64, error) { return askTerm(ctx, one.asker) })
	})
	return one
}

func (one *Peer) end() {
	one.cancel()
	one.client.Close()
	one.asker.Close()
}

// Client returns the connection for operations to a member, or nil for this node and unknown nodes.
func (p *Peers) Client(id string) *peer.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.Nodes[id]; one != nil {
		return one.client
	}
	return nil
}

// Askers returns the connections for questions to the given nodes, without this node and unknown nodes.
func (p *Peers) Askers(ids []string) (clients []*peer.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if one := p.Nodes[id]; one != nil {
			clients = append(clients, one.asker)
		}
	}
	return clients
}

// Clients returns the connections to a member for questions and for operations, or nil for this node and unknown
// nodes.
func (p *Peers) Clients(id string) (asker, client *peer.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.Nodes[id]; one != nil {
		return one.asker, one.client
	}
	return nil, nil
}

// IdAt returns the member that should answer at an address.
func (p *Peers) IdAt(addr string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.Servers {
		if string(s.Address) == addr {
			return string(s.ID)
		}
	}
	return ""
}

// Last returns the last status of a member, or false if none was received.
func (p *Peers) Last(id string) (Heard, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.Nodes[id]
	if one == nil || one.Heard.At.IsZero() {
		return Heard{}, false
	}
	return one.Heard, true
}

// FormatOf returns the newest form of entries that a member reads, or 0 if it has not said so yet.
func (p *Peers) FormatOf(id string) byte {
	last, _ := p.Last(id)
	return last.Format
}

// RemovedSince reports whether a member, or the stranger that was heard last, knows a committed configuration newer
// than log index since that does not contain id.
func (p *Peers) RemovedSince(id string, since uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.Nodes {
		if one.Heard.removedSince(id, since) {
			return true
		}
	}
	return p.stranger.removedSince(id, since)
}

func (s *Status) removedSince(id string, since uint64) bool {
	return s.MembersAt > since && len(s.Members) > 0 && !slices.Contains(s.Members, id)
}

// HearStranger takes the status of a node of the group that this node does not know as a member.
func (p *Peers) HearStranger(s Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stranger = s
}

// Close closes the connections to all peers.
func (p *Peers) Close() {
	p.of.Options.Host.leave(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, one := range p.Nodes {
		one.end()
	}
}
