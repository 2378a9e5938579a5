package away

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Network calls the hosts of other nodes.
type Network interface {
	// Call makes a call to the host at an address.
	Call(ctx context.Context, addr string, payload []byte) (status byte, answer []byte, err error)
}

// Config is what a Group is given.
type Config struct {
	Group, Groups int           // its number, and how many there are
	MaxAge        time.Duration // of an operation that waits for its decision, and of a read
	Network       Network
	MaxValueBytes int               // of an operation
	Window        *queue.HostWindow // of the host
	Life          context.Context   // of the node
	Tasks         *sync.WaitGroup   // for the goroutines of the group, which end with Life, or with Close
	// Founders returns the addresses of nodes that have the group, for a node that knows no leader yet.
	Founders func() []string
}

// Group is a group without a replica on this node. Its methods may be called from any goroutine.
type Group struct {
	config Config
	queue  *queue.Queue
	known  atomic.Pointer[known]

	watching sync.Mutex
	wake     chan struct{}         // nil: no caller waits for events; guarded by watching
	watched  engine.EventsPosition // at which they wait; guarded by watching
}

// New returns a group. Run sends its operations until Close.
func New(c Config) *Group { return &Group{config: c, queue: queue.New(c.MaxValueBytes, c.Window)} }

// Close ends Run.
func (g *Group) Close() { g.queue.Close() }

// Expire answers the operations that have waited too long.
func (g *Group) Expire() { g.queue.Expire(g.config.MaxAge) }

// known is what this node knows of a group that is away.
type known struct {
	host.Led
	leader string    // the address of its leader
	at     time.Time // of the report
}

// LeaderWithout returns the address of the leader, if it has lately reported the group without a member.
func (g *Group) LeaderWithout(id string) (addr string, ok bool) {
	k := g.known.Load()
	if !k.fresh() || slices.ContainsFunc(k.Members, func(m host.LedMember) bool { return m.ID == id }) {
		return "", false
	}
	return k.leader, true
}

// fresh reports whether the leader has reported the group lately.
func (k *known) fresh() bool { return k != nil && time.Since(k.at) < 3*timers.StatusEvery }

// Run sends the batches of the group until the queue is closed.
func (g *Group) Run() {
	for b := g.queue.Next(); b != nil; b = g.queue.Next() {
		g.config.Tasks.Go(func() { g.queue.Complete(b, g.send(b)) })
	}
}

// send sends a batch to a node that has the group.
func (g *Group) send(b *queue.Batch) error {
	ctx, cancel := context.WithTimeout(g.config.Life, g.config.MaxAge)
	defer cancel()
	return pipeline.Forward(b, func(method byte) (byte, []byte, error) { return g.call(ctx, method, b.Body()) })
}

// call makes a call to the nodes that have the group, one after the other, until one of them has carried it out or may
// have done so.
func (g *Group) call(ctx context.Context, method byte, body []byte) (status byte, answer []byte, err error) {
	return g.callAny(ctx, append(Head(g.config.Group, method), body...))
}

// headLen is the length of a head.
const headLen = 2 + 1

// Head returns the head of a payload of calls.Group: the group and the method.
func Head(group int, method byte) []byte {
	return append(binary.LittleEndian.AppendUint16(nil, uint16(group)), method)
}

// ReadHead splits a payload of calls.Group.
func ReadHead(payload []byte) (group int, method byte, body []byte, ok bool) {
	if len(payload) < headLen {
		return 0, 0, nil, false
	}
	return int(binary.LittleEndian.Uint16(payload)), payload[headLen-1], payload[headLen:], true
}

// callAny is call with the payload of calls.Group.
func (g *Group) callAny(ctx context.Context, payload []byte) (status byte, answer []byte, err error) {
	status = calls.NotLeader
	for _, addr := range g.hosts() {
		status, answer, err = g.config.Network.Call(ctx, addr, payload)
		if err == nil && status != calls.NotLeader || err != nil && !errors.Is(err, peer.ErrNotSent) {
			break
		}
	}
	return status, answer, err
}

// readAny asks the nodes that have the group, one after the other, until one answers. A read may be repeated, so each
// has a part of the time.
func (g *Group) readAny(ctx context.Context, payload []byte) (status byte, answer []byte, err error) {
	status = calls.NotLeader
	hosts := g.hosts()
	for _, addr := range hosts {
		part, end := context.WithTimeout(ctx, g.config.MaxAge/time.Duration(len(hosts)))
		status, answer, err = g.config.Network.Call(part, addr, payload)
		end()
		if err == nil && status != calls.NotLeader {
			break
		}
	}
	return status, answer, err
}

// hosts returns the addresses of the nodes that have the group, the leader first.
func (g *Group) hosts() (addrs []string) {
	k := g.known.Load()
	if k == nil {
		return g.config.Founders()
	}
	addrs = append(addrs, k.leader)
	for _, m := range k.Members {
		if m.Addr != k.leader && m.Voter {
			addrs = append(addrs, m.Addr)
		}
	}
	return addrs
}

// Learn takes a report of the node that leads the group, or led it.
func (g *Group) Learn(from string, at time.Time, led host.Led) {
	for k := g.known.Load(); k == nil || led.Term > k.Term ||
		led.Term == k.Term && led.Commit >= k.Commit && at.After(k.at); k = g.known.Load() {
		if g.known.CompareAndSwap(k, &known{led, from, at}) {
			return
		}
	}
}

// Decide decides operations; see limiter.Limiter.
func (g *Group) Decide(ops []engine.Op, out []engine.Decision) error {
	if pipeline.AllDry(ops) {
		return g.explain(ops, out)
	}
	return g.submit(ops, out, false)
}

// DecideAtomic decides operations as one step.
func (g *Group) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	return g.submit(ops, out, true)
}

func (g *Group) submit(ops []engine.Op, out []engine.Decision, atomic bool) error {
	start := time.Now()
	oneByOne := func() bool { return true }
	err := pipeline.Sending{Queue: g.queue, OneByOne: oneByOne}.Submit(ops, out, atomic)
	if err == nil && time.Since(start) > g.config.MaxAge {
		return limiter.ErrUnknownOutcome
	}
	return err
}

// Clear removes all limiters of the group.
func (g *Group) Clear() error {
	return g.ask(calls.Clear, nil)
}

// ClearDatabase removes everything of one database from the group but the blocks everywhere.
func (g *Group) ClearDatabase(database int) error {
	var out [1]engine.Decision
	op := engine.Flush(database, hashslot.OfGroup(g.config.Group, g.config.Groups).First)
	err := g.Decide([]engine.Op{op}, out[:])
	if err == nil && out[0].Status != engine.OK {
		return limiter.OutcomeOfStatus(out[0].Status)
	}
	return err
}

// Advance moves the test clock of the group.
func (g *Group) Advance(d time.Duration) bool {
	return g.order(membership.Order{What: "advance", MoveNs: int64(d)}) == nil
}

// AddNode adds a node to the group.
func (g *Group) AddNode(id, raftAddr string) error {
	return g.order(membership.Order{What: "add", ID: id, Addr: raftAddr})
}

// RemoveNode removes a node from the group.
func (g *Group) RemoveNode(id string) error { return g.order(membership.Order{What: "remove", ID: id}) }

// ReleaseReplica removes a node from the group, unless the group would have too few replicas.
func (g *Group) ReleaseReplica(id string) error {
	return g.order(membership.Order{What: "release", ID: id})
}

// TransferLeadership transfers the leadership of the group to a member, by its id in the group, or with "" to any.
func (g *Group) TransferLeadership(to string) error {
	return g.order(membership.Order{What: "transfer", ID: to})
}

func (g *Group) order(o membership.Order) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return g.ask(calls.Admin, b)
}

// ask makes a call whose answer is an outcome.
func (g *Group) ask(method byte, body []byte) error {
	ctx, cancel := context.WithTimeout(g.config.Life, timers.AdminTimeout)
	defer cancel()
	status, answer, err := g.call(ctx, method, body)
	switch {
	case errors.Is(err, peer.ErrNotSent):
		return limiter.ErrClusterDown
	case err != nil:
		return limiter.ErrUnknownOutcome
	}
	return calls.OutcomeOf(status, answer)
}

// ReadIndex returns nil: a node that has the group makes each read of it linearizable.
func (g *Group) ReadIndex() error { return nil }

// Current asks the leader for the members of the group.
func (g *Group) Current() (*limiter.Topology, error) {
	got, err := g.read(&question{What: askLeader})
	if err != nil {
		return nil, err
	}
	k := &known{Led: got.Led, at: time.Now()}
	for _, m := range k.Members {
		if m.ID == k.Leader {
			k.leader = m.Addr
		}
	}
	g.Learn(k.leader, k.at, k.Led)
	return k.topology(), nil
}

// Topology describes the group as its leader has reported it. The ids are those in the group.
func (g *Group) Topology() *limiter.Topology { return g.known.Load().topology() }

func (k *known) topology() *limiter.Topology {
	t := &limiter.Topology{}
	if k == nil {
		return t
	}
	t.Term, t.AppliedIndex, t.CommitIndex = k.Term, k.Applied, k.Commit
	for _, m := range k.Members {
		t.Nodes = append(t.Nodes, limiter.Member{
			ID: m.ID, RaftAddr: m.Addr, Voter: m.Voter, Up: m.Up, LagEntries: m.Lag,
		})
		if m.Addr == k.leader {
			t.LastLeader = m.ID
		}
	}
	if k.fresh() {
		t.Leader = t.LastLeader
	}
	return t
}
