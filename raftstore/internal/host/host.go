package host

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/permit"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/sharedlog"
)

// Host is what a process has once for all of its groups: the inter-node port, the log, the window in which groups
// propose, the loop of their checks, the memory, the turns for snapshots, and the exchange of status. The exchange asks
// each other host for the status of all its groups with one question.
type Host struct {
	// Hub accepts the connections of all groups.
	Hub *peer.Hub
	// SharedLog keeps the logs of all groups. The first group opens it after it has claimed its data directory.
	SharedLog *sharedlog.Log
	// Window makes all groups propose at the same moment.
	Window *queue.HostWindow
	// Snapshots lets one group take a snapshot at a time.
	Snapshots permit.Permit

	loop   *timers.Loop    // of the checks of all groups
	checks *timers.Checks  // of the exchange
	life   context.Context // ends with the host
	end    context.CancelFunc
	tasks  sync.WaitGroup
	askTogether
	repeats logging.Repeats // of lines that the groups log

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

// NewHost returns a host whose groups have no files and no connections yet. o are the options of the whole process. The
// host owns the listener. Close ends the host after its groups.
func NewHost(o *Options) *Host {
	return newHost(o, peer.NewHub(o.Listener, peer.HubConfig{
		Secret: o.Secret, Certificates: o.Certificates, Logger: cmp.Or(o.Logger, slog.Default()), Dialer: o.Dialer,
	}), peer.AskTogether)
}

// askTogether asks a host for the status of several groups.
type askTogether func(ctx context.Context, addr string, questions []peer.Question) ([]peer.Answer, error)

// newHost returns a host with a hub, and begins the exchange of status.
func newHost(o *Options, hub *peer.Hub, ask askTogether) *Host {
	h := &Host{
		Hub: hub, SharedLog: newSharedLog(*o), Window: queue.NewHostWindow(),
		askTogether: ask, hosts: map[string]*exchange{}, loop: timers.NewLoop(),
	}
	h.life, h.end = context.WithCancel(context.Background())
	h.checks = timers.Join(h.loop)
	h.checks.Every(timers.HousekeepEvery, h.exchange)
	return h
}

// Close ends the exchange, the loop, the log and the hub, in this order.
func (h *Host) Close() error {
	h.end()
	h.checks.Leave()
	h.tasks.Wait()
	h.loop.Close()
	return errors.Join(h.SharedLog.Close(), h.Hub.Close())
}

// FreeLog removes the entries of groups that have ended from the shared log.
func (h *Host) FreeLog() error {
	return h.SharedLog.DropClosed()
}

// budget returns the memory budget of all groups. The first call creates it; see budget.New.
func (h *Host) budget(bound int64, groups int, followsUse bool) *budget.Budget {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.memory == nil {
		h.memory = budget.New(bound, groups, followsUse)
	}
	return h.memory
}

// join adds a group to the exchange, and leave removes it.
func (h *Host) join(group *Peers) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.groups = append(h.groups, group)
}

func (h *Host) leave(group *Peers) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.groups = slices.DeleteFunc(h.groups, func(other *Peers) bool { return other == group })
}

// exchange asks every host whose question is due. It begins no second question to a host that has not answered.
func (h *Host) exchange() {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := map[string][]member{}
	for _, group := range h.groups {
		group.eachAddr(func(addr string, one *Peer) { at[addr] = append(at[addr], member{group, one}) })
	}
	for addr := range h.hosts {
		if at[addr] == nil {
			delete(h.hosts, addr)
		}
	}
	now := time.Now()
	for addr, members := range at {
		if h.hosts[addr] == nil {
			h.hosts[addr] = &exchange{}
		}
		h.begin(h.hosts[addr], addr, members, now)
	}
}

// begin asks a host about its members if the question is due. Otherwise it asks about the members that were never asked
// about. The caller holds mu.
func (h *Host) begin(x *exchange, addr string, members []member, now time.Time) {
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
	h.tasks.Go(func() {
		h.ask(addr, members, now)
		h.mu.Lock()
		defer h.mu.Unlock()
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
func (h *Host) ask(addr string, members []member, now time.Time) {
	ctx, cancel := context.WithTimeout(h.life, timers.StatusTimeout)
	defer cancel()
	var questions []peer.Question
	for _, m := range members {
		m.peers.markAsked(m.one, now)
		questions = append(questions, peer.Question{Port: m.peers.of.Port, To: m.one.ID, Method: calls.Status})
	}
	answers, err := h.askTogether(ctx, addr, questions)
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
