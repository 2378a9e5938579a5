package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/permit"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Process holds what all groups of a process share, apart from the hub: the loop that calls their checks, and the
// exchange of status with other hosts. The exchange asks each host for the status of all its groups with one question.
type Process struct {
	loop   *timers.Loop
	checks *timers.Checks
	life   context.Context // ends with the process
	end    context.CancelFunc
	tasks  sync.WaitGroup
	// askTogether is peer.AskTogether; a test replaces it.
	askTogether func(ctx context.Context, addr string, questions []peer.Question) ([]peer.Answer, error)
	// Snapshots lets one group take a snapshot at a time.
	Snapshots permit.Permit
	repeats   logging.Repeats // of lines that the groups log

	mu     sync.Mutex
	groups []*Peers
	hosts  map[string]*exchange // by the address of the host
	memory *budget.Budget       // nil until the first group joins it
}

// exchange is the state of the exchange with one host.
type exchange struct {
	asked   time.Time // when it was asked about all groups last
	talking bool      // a question is under way
}

// member is a member of a group that the exchange asks about.
type member struct {
	peers *Peers
	one   *Peer
}

// NewProcess returns the shared parts of a process whose nodes have no group yet. Close ends them after the nodes.
func NewProcess() *Process {
	p := &Process{
		loop: timers.NewLoop(), askTogether: peer.AskTogether,
		hosts: map[string]*exchange{},
	}
	p.life, p.end = context.WithCancel(context.Background())
	p.checks = timers.Join(p.loop)
	p.checks.Every(timers.HousekeepEvery, p.exchange)
	return p
}

// Close ends the loop and the exchange.
func (p *Process) Close() {
	p.end()
	p.checks.Leave()
	p.tasks.Wait()
	p.loop.Close()
}

// budget returns the memory budget of the process. The first call creates it; see budget.New.
func (p *Process) budget(bound int64, groups int, followsUse bool) *budget.Budget {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.memory == nil {
		p.memory = budget.New(bound, groups, followsUse)
	}
	return p.memory
}

// join adds a group to the exchange, and leave removes it.
func (p *Process) join(group *Peers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups = append(p.groups, group)
}

func (p *Process) leave(group *Peers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups = slices.DeleteFunc(p.groups, func(other *Peers) bool { return other == group })
}

// exchange asks every host whose question is due. It begins no second question to a host that has not answered.
func (p *Process) exchange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := map[string][]member{}
	for _, group := range p.groups {
		group.eachAddr(func(addr string, one *Peer) { at[addr] = append(at[addr], member{group, one}) })
	}
	for addr := range p.hosts {
		if at[addr] == nil {
			delete(p.hosts, addr)
		}
	}
	now := time.Now()
	for addr, members := range at {
		if p.hosts[addr] == nil {
			p.hosts[addr] = &exchange{}
		}
		p.begin(p.hosts[addr], addr, members, now)
	}
}

// begin asks a host about its members if the question is due. Otherwise it asks about the members that were never asked
// about. The caller holds mu.
func (p *Process) begin(x *exchange, addr string, members []member, now time.Time) {
	if x.talking {
		return
	}
	if due(x.asked, now) {
		x.asked = now
	} else {
		members = neverAsked(members)
	}
	if len(members) == 0 {
		return
	}
	x.talking = true
	p.tasks.Go(func() {
		p.ask(addr, members, now)
		p.mu.Lock()
		defer p.mu.Unlock()
		x.talking = false
	})
}

func neverAsked(members []member) (left []member) {
	for _, m := range members {
		if m.peers.neverAsked(m.one) {
			left = append(left, m)
		}
	}
	return left
}

// ask asks a host for the status of members. A host that knows no common question is asked by each group.
func (p *Process) ask(addr string, members []member, now time.Time) {
	ctx, cancel := context.WithTimeout(p.life, timers.StatusTimeout)
	defer cancel()
	var questions []peer.Question
	for _, m := range members {
		m.peers.markAsked(m.one, now)
		questions = append(questions, peer.Question{Port: m.peers.of.Port, To: m.one.ID, Method: calls.Status})
	}
	answers, err := p.askTogether(ctx, addr, questions)
	if errors.Is(err, peer.ErrNotShared) {
		for _, m := range members {
			m.one.polling.Go(m.peers.of.Go, func() { m.peers.poll(m.one, now) })
		}
		return
	}
	for i, a := range answers {
		if s, err := statusOf(a.Status, a.Payload, a.Err); err == nil {
			members[i].peers.heard(members[i].one, s, now)
		}
	}
}
