package servertest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// FakeCluster is a cluster whose nodes share one limiter, so that all nodes are always up to date and agree on the
// leader.
type FakeCluster struct {
	*TableLimiter

	mu   sync.Mutex
	Topo limiter.Topology      // without Self
	down error                 // if set, the result of every node's ReadIndex
	old  time.Duration         // result of StaleFor
	cut  map[int]error         // results of ReadIndexOf by group, instead of down
	aged map[int]time.Duration // results of StaleForOf by group, instead of old
	did  []string              // requested changes
	fail error                 // result of a change
	Step limiter.Move          // result of MoveReplica
}

// NewFakeCluster returns a cluster of the nodes a, b and c. Node a leads.
func NewFakeCluster() *FakeCluster {
	f := &FakeCluster{TableLimiter: NewTableLimiter()}
	f.Topo = limiter.Topology{ClusterID: "c1", Leader: "a", LastLeader: "a", Term: 7, AppliedIndex: 40, CommitIndex: 42,
		Format: 1, Nodes: []limiter.Member{
			{ID: "a", ClientAddr: "10.0.0.1:6380", RaftAddr: "10.0.0.1:6390", Voter: true, Up: true,
				AppliedIndex: 42, Format: 2},
			{ID: "b", ClientAddr: "10.0.0.2:6380", RaftAddr: "10.0.0.2:6391", Voter: true, Up: true, AppliedIndex: 41,
				LagEntries: 1, LastHeard: time.Second, Format: 1},
			{ID: "c", ClientAddr: "c.example:6380", RaftAddr: "c.example:6392", Up: true, AppliedIndex: 42, Voter: true,
				LastHeard: 2 * time.Second},
		}}
	return f
}

// Change changes the topology that all nodes see.
func (f *FakeCluster) Change(how func(*limiter.Topology)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Topo.Nodes = append([]limiter.Member(nil), f.Topo.Nodes...)
	how(&f.Topo)
}

// Lead makes a node the leader, or with "" removes the leader.
func (f *FakeCluster) Lead(id string) {
	f.Change(func(t *limiter.Topology) {
		t.Term++
		if t.Leader = id; id != "" {
			t.LastLeader = id
		}
	})
}

// Split divides the slots among groups with these leaders. An empty leader is unknown. The last leader of a group that
// has a leader stays its last leader. The number of leaders is a power of two. Lead is for one group only.
func (f *FakeCluster) Split(leaders ...string) {
	f.Change(func(t *limiter.Topology) {
		before := t.Groups
		t.Groups = make([]limiter.Group, len(leaders))
		for i, leader := range leaders {
			g := limiter.Group{Slots: hashslot.OfGroup(i, len(leaders)), Leader: leader, LastLeader: leader,
				Term: t.Term + uint64(i), AppliedIndex: t.AppliedIndex, CommitIndex: t.CommitIndex}
			if leader == "" && len(before) == len(leaders) {
				g.LastLeader = before[i].LastLeader
			}
			t.Groups[i] = g
		}
		t.Leader, t.LastLeader = leaders[0], t.Groups[0].LastLeader
	})
}

// Spread makes a cluster of the nodes with these letters as ids, whose groups live on a part of them, on as many as the
// first group. A group is the letters of its nodes: the first one leads, and capital letters have no vote yet. A group
// that begins with "-" has no leader.
func (f *FakeCluster) Spread(nodes string, groups ...string) {
	f.Change(func(t *limiter.Topology) {
		t.Nodes, t.Groups, t.Replicas = nil, nil, len(strings.TrimPrefix(groups[0], "-"))
		for i, letters := range groups {
			g := limiter.Group{Slots: hashslot.OfGroup(i, len(groups)), Term: t.Term + uint64(i),
				AppliedIndex: t.AppliedIndex, CommitIndex: t.CommitIndex, Members: []limiter.GroupMember{}}
			if letters[0] != '-' {
				g.Leader, g.LastLeader = letters[:1], letters[:1]
			}
			for _, id := range nodes {
				if at := strings.IndexByte(strings.ToLower(letters), byte(id)); at >= 0 {
					g.Members = append(g.Members, limiter.GroupMember{ID: string(id),
						Voter: letters[at] == byte(id)})
				}
			}
			t.Groups = append(t.Groups, g)
		}
		for i, id := range nodes {
			host := "10.0.0." + strconv.Itoa(i+1)
			has := strings.Join(groups, "")
			t.Nodes = append(t.Nodes, limiter.Member{ID: string(id), ClientAddr: host + ":6380",
				RaftAddr: host + ":6390", Up: true, AppliedIndex: t.AppliedIndex, Zone: "z" + strconv.Itoa(i%3+1),
				Voter: strings.ContainsRune(has, id) && !strings.Contains(has, strings.ToUpper(string(id)))})
		}
		t.Leader, t.LastLeader = t.Groups[0].Leader, t.Groups[0].LastLeader
	})
}

// FakeReplica is the Limiter of one node.
type FakeReplica struct {
	*FakeCluster
	ID       string
	Decided  atomic.Int64 // calls to Decide
	Confirms atomic.Int64 // calls to ReadIndex
	away     remote
}

var _ limiter.Replica = (*FakeReplica)(nil)

func (r *FakeReplica) Topology() *limiter.Topology {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.Topo
	t.Self = r.ID
	if t.Groups == nil {
		t.Groups = []limiter.Group{{Slots: hashslot.All, Leader: t.Leader, LastLeader: t.LastLeader, Term: t.Term,
			AppliedIndex: t.AppliedIndex, CommitIndex: t.CommitIndex}}
	}
	t.Groups = slices.Clone(t.Groups)
	for i := range t.Groups { // every node has the first group, without a vote if it has no replica
		g := &t.Groups[i]
		g.Away = r.isAway(i) || t.Replicas > 0 && i > 0 && !g.Has(r.ID)
	}
	return &t
}

func (r *FakeReplica) Decide(ops []engine.Op, out []engine.Decision) error {
	r.Decided.Add(1)
	t := r.Topology()
	if len(t.Groups) > 1 {
		return r.decideByGroup(t, ops, out)
	}
	if t.Leader == "" && !ops[0].Dry {
		return limiter.ErrClusterDown
	}
	return r.FakeCluster.Decide(ops, out)
}

// decideByGroup gives operations of groups without a leader, and operations on several slots, their own status. Another
// node knows the leader of a group that is away.
func (r *FakeReplica) decideByGroup(t *limiter.Topology, ops []engine.Op, out []engine.Decision) error {
	for i := range ops {
		slot := engine.SlotOf(ops[i].Key)
		switch {
		case ops[i].Slotless():
		case !ops[i].Within(hashslot.Range{First: slot, Last: slot}):
			out[i] = engine.Decision{Status: limiter.ErrCrossSlot.Status()}
			continue
		case t.GroupOf(slot).Leader == "" && !t.GroupOf(slot).Away && !ops[i].Dry:
			out[i] = engine.Decision{Status: limiter.ErrClusterDown.Status()}
			continue
		case r.isAway(t.NumberOf(slot)) && ops[i].Dry:
			if err := r.readAway(); err != nil {
				outcome := limiter.OutcomeOf(err)
				if outcome.MayBeDone() {
					outcome = limiter.ErrTryAgain
				}
				out[i] = engine.Decision{Status: outcome.Status()}
				continue
			}
		}
		if err := r.FakeCluster.Decide(ops[i:i+1], out[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *FakeReplica) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	t := r.Topology()
	for i := range ops {
		slot := engine.SlotOf(ops[0].Key)
		if len(t.Groups) > 1 && !ops[i].Within(hashslot.Range{First: slot, Last: slot}) {
			return limiter.ErrCrossSlot
		}
	}
	return r.FakeCluster.DecideAtomic(ops, out)
}

func (r *FakeReplica) ReadIndex() error {
	r.Confirms.Add(1)
	for _, g := range r.Topology().Groups {
		if g.Leader == "" && !g.Away {
			return limiter.ErrClusterDown
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

func (r *FakeReplica) StaleFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.old
}

func (r *FakeReplica) ReadIndexOf(slot uint16) error {
	r.Confirms.Add(1)
	t := r.Topology()
	switch g := t.GroupOf(slot); {
	case g.Away:
		return nil
	case g.Leader == "":
		return limiter.ErrClusterDown
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.cut[hashslot.Group(slot, len(t.Groups))]; err != nil {
		return err
	}
	return r.down
}

func (r *FakeReplica) StaleForOf(slot uint16) time.Duration {
	group := hashslot.Group(slot, len(r.Topology().Groups))
	if r.isAway(group) {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if age, ok := r.aged[group]; ok {
		return age
	}
	return r.old
}

func (r *FakeReplica) LenOf(slot uint16, database int) (n int64) {
	slots := r.Topology().GroupOf(slot).Slots
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = r.FakeCluster.Scan(cursor, 1000, func(key []byte, _ engine.Algorithm) {
			if in, _ := engine.CutDatabase(key); in == database && slots.Has(engine.SlotOf(key)) {
				n++
			}
		})
	}
	return n
}

// CutOff makes ReadIndexOf fail for a group with err, or with nil succeed again. Its state has an age.
func (f *FakeCluster) CutOff(group int, err error, age time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut == nil {
		f.cut, f.aged = map[int]error{}, map[int]time.Duration{}
	}
	f.cut[group], f.aged[group] = err, age
}

func (r *FakeReplica) do(what ...string) error {
	if !r.Topology().Leads() && what[0] != "snapshot" {
		return limiter.ErrNotLeader
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, strings.Join(what, " "))
	return r.fail
}

func (r *FakeReplica) AddNode(id, addr string) error      { return r.do("add", id, addr) }
func (r *FakeReplica) RemoveNode(id string) error         { return r.do("remove", id) }
func (r *FakeReplica) TransferLeadership(to string) error { return r.do("transfer", to) }
func (r *FakeReplica) TransferGroup(group int, to string) error {
	return r.do("transfer", to, strconv.Itoa(group))
}
func (r *FakeReplica) RemoveFromGroup(id string, group int) error {
	return r.do("remove", id, strconv.Itoa(group))
}
func (r *FakeReplica) MoveReplica(group int, from, to string) (limiter.Move, error) {
	err := r.do("move", strconv.Itoa(group), from, to)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Step, err
}
func (r *FakeReplica) Digest(group int) (index, hash uint64) { return uint64(7 + group), 0xabc }

func (r *FakeReplica) LeaderOf(slot uint16) string { return r.Topology().GroupOf(slot).Leader }
func (r *FakeReplica) Snapshot() error             { return r.do("snapshot") }
func (f *FakeCluster) Node(id string) *FakeReplica { return &FakeReplica{FakeCluster: f, ID: id} }
func (f *FakeCluster) SetAge(d time.Duration)      { f.mu.Lock(); f.old = d; f.mu.Unlock() }
func (f *FakeCluster) SetDown(err error)           { f.mu.Lock(); f.down = err; f.mu.Unlock() }
func (f *FakeCluster) SetFail(err error)           { f.mu.Lock(); f.fail = err; f.mu.Unlock() }
func (f *FakeCluster) Asked() []string             { f.mu.Lock(); defer f.mu.Unlock(); return f.did }

// Addr returns the address at which a started node listens.
func (f *FakeCluster) Addr(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Topo.Member(id).ClientAddr
}

var ErrFake = errors.New("the fake refuses")
