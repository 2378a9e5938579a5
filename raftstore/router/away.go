package router

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
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

// In a cluster with --replicas, a node has replicas of some groups. All others are away: their operations go to a node
// that has a replica, the leader if it is known. The nodes that lead groups report them in the exchange of status.

// reachable is a group, wherever its replicas are.
type reachable interface {
	Decide(ops []engine.Op, out []engine.Decision) error
	DecideAtomic(ops []engine.Op, out []engine.Decision) error
	Clear() error
	ClearDatabase(database int) error
	Advance(d time.Duration) bool
	Topology() *limiter.Topology
	ReadIndex() error
	Backup() (*limiter.Backup, error)
	AddNode(id, raftAddr string) error
	RemoveNode(id string) error
	TransferLeadership(to string) error
}

// network calls the hosts of other nodes.
type network interface {
	// Call makes a call to the host at an address.
	Call(ctx context.Context, addr string, payload []byte) (status byte, answer []byte, err error)
}

// away is a group without a replica on this node.
type away struct {
	group, groups int
	maxAge        time.Duration
	network       network
	queue         *queue.Queue
	life          context.Context
	founders      func() []string // addresses of the nodes that founded the group, for a node that knows no leader yet
	known         atomic.Pointer[known]
	tasks         *sync.WaitGroup

	watching sync.Mutex
	wake     chan struct{} // nil: no caller waits for events; guarded by watching
}

// known is what this node knows of a group that is away.
type known struct {
	host.Led
	leader string    // the address of its leader
	at     time.Time // of the report
}

// fresh reports whether the leader has reported the group lately.
func (k *known) fresh() bool { return k != nil && time.Since(k.at) < 3*timers.StatusEvery }

var _ reachable = (*away)(nil)

// run sends the batches of the group until the queue is closed.
func (a *away) run() {
	for b := a.queue.Next(); b != nil; b = a.queue.Next() {
		a.tasks.Go(func() { a.queue.Complete(b, a.send(b)) })
	}
}

// send sends a batch to a node that has the group.
func (a *away) send(b *queue.Batch) error {
	ctx, cancel := context.WithTimeout(a.life, a.maxAge)
	defer cancel()
	return pipeline.Forward(b, func(method byte) (byte, []byte, error) { return a.call(ctx, method, b.Body()) })
}

// groupHead is the length of the head of calls.Group: the group and the method.
const groupHead = 2 + 1

// call makes a call to the nodes that have the group, one after the other, until one of them has carried it out or may
// have done so.
func (a *away) call(ctx context.Context, method byte, body []byte) (status byte, answer []byte, err error) {
	return a.callAny(ctx, append(a.head(method), body...))
}

// head returns the head of a call about the group.
func (a *away) head(method byte) []byte {
	return append(binary.LittleEndian.AppendUint16(nil, uint16(a.group)), method)
}

// callAny is call with the payload of calls.Group.
func (a *away) callAny(ctx context.Context, payload []byte) (status byte, answer []byte, err error) {
	status = calls.NotLeader
	for _, addr := range a.hosts() {
		status, answer, err = a.network.Call(ctx, addr, payload)
		if err == nil && status != calls.NotLeader || err != nil && !errors.Is(err, peer.ErrNotSent) {
			break
		}
	}
	return status, answer, err
}

// hosts returns the addresses of the nodes that have the group, the leader first.
func (a *away) hosts() (addrs []string) {
	k := a.known.Load()
	if k == nil {
		return a.founders()
	}
	addrs = append(addrs, k.leader)
	for _, m := range k.Members {
		if m.Addr != k.leader && m.Voter {
			addrs = append(addrs, m.Addr)
		}
	}
	return addrs
}

// learn takes a report of the node that leads the group, or led it.
func (a *away) learn(from string, at time.Time, led host.Led) {
	k := a.known.Load()
	if k == nil || led.Term > k.Term || led.Term == k.Term && led.Commit >= k.Commit && at.After(k.at) {
		a.known.Store(&known{led, from, at})
	}
}

// Decide decides operations; see limiter.Limiter.
func (a *away) Decide(ops []engine.Op, out []engine.Decision) error {
	if allDry(ops) {
		return a.explain(ops, out)
	}
	return a.submit(ops, out, false)
}

// DecideAtomic decides operations as one step.
func (a *away) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	return a.submit(ops, out, true)
}

func (a *away) submit(ops []engine.Op, out []engine.Decision, atomic bool) error {
	start := time.Now()
	oneByOne := func() bool { return true }
	err := pipeline.Sending{Queue: a.queue, OneByOne: oneByOne}.Submit(ops, out, atomic)
	if err == nil && time.Since(start) > a.maxAge {
		return limiter.ErrUnknownOutcome
	}
	return err
}

// allDry reports whether no operation changes anything.
func allDry(ops []engine.Op) bool {
	for i := range ops {
		if !ops[i].Dry {
			return false
		}
	}
	return true
}

// Clear removes all limiters of the group.
func (a *away) Clear() error {
	return a.ask(calls.Clear, nil)
}

// ClearDatabase removes everything of one database from the group but the blocks everywhere.
func (a *away) ClearDatabase(database int) error {
	var out [1]engine.Decision
	op := engine.Flush(database, hashslot.OfGroup(a.group, a.groups).First)
	if err := a.Decide([]engine.Op{op}, out[:]); err != nil {
		return err
	}
	if out[0].Status != engine.OK {
		return limiter.OutcomeOfStatus(out[0].Status)
	}
	return nil
}

// Advance moves the test clock of the group.
func (a *away) Advance(d time.Duration) bool {
	return a.order(membership.Order{What: "advance", MoveNs: int64(d)}) == nil
}

// AddNode adds a node to the group.
func (a *away) AddNode(id, raftAddr string) error {
	return a.order(membership.Order{What: "add", ID: id, Addr: raftAddr})
}

// RemoveNode removes a node from the group.
func (a *away) RemoveNode(id string) error { return a.order(membership.Order{What: "remove", ID: id}) }

// TransferLeadership transfers the leadership of the group to a member, by its id in the group, or with "" to any.
func (a *away) TransferLeadership(to string) error {
	return a.order(membership.Order{What: "transfer", ID: to})
}

func (a *away) order(o membership.Order) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return a.ask(calls.Admin, b)
}

// ask makes a call whose answer is an outcome.
func (a *away) ask(method byte, body []byte) error {
	ctx, cancel := context.WithTimeout(a.life, timers.AdminTimeout)
	defer cancel()
	status, answer, err := a.call(ctx, method, body)
	switch {
	case errors.Is(err, peer.ErrNotSent):
		return limiter.ErrClusterDown
	case err != nil:
		return limiter.ErrUnknownOutcome
	}
	return calls.OutcomeOf(status, answer)
}

// ReadIndex returns nil: a node that has the group makes each read of it linearizable.
func (a *away) ReadIndex() error { return nil }

// current asks the leader for the members of the group.
func (a *away) current() (*limiter.Topology, error) {
	led, from, err := a.look()
	if err != nil {
		return nil, err
	}
	k := &known{led, from, time.Now()}
	a.learn(from, k.at, led)
	return k.topology(), nil
}

// Topology describes the group as its leader has reported it. The ids are those in the group.
func (a *away) Topology() *limiter.Topology { return a.known.Load().topology() }

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
