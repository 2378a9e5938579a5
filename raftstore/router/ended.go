package router

import (
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// ended stands in the place of a group that has ended on this node. It has no keys and decides nothing. Other nodes
// have the group.
type ended struct {
	group int
	why   error
	last  limiter.Topology // without a leader

	options raftstore.Options // the data directory, which stays
}

// standIn returns the stand-in of a group that ends. The stand-in knows the nodes and the last leader of the group.
func (n *Node) standIn(e ending) *ended {
	t := *n.Group(e.group).Topology()
	if t.Leader != "" && t.Leader != t.Self {
		t.LastLeader = t.Leader
	}
	t.Leader = ""
	return &ended{e.group, e.why, t, n.ofGroup(e.group)}
}

// live returns the groups that have not ended on this node.
func (r *Router) live() (groups []Group) {
	for _, g := range r.all() {
		if _, ok := g.(*ended); !ok {
			groups = append(groups, g)
		}
	}
	return groups
}

// base returns the first group that has not ended, or the first group if all have. It answers for the nodes, the
// policies and the time.
func (r *Router) base() Group {
	for _, g := range r.all() {
		if _, ok := g.(*ended); !ok {
			return g
		}
	}
	return r.all()[0]
}

// elsewhere is the error of a change that this node cannot make.
func (e *ended) elsewhere() error {
	return fmt.Errorf("group %d has ended on this node: send the command to another node", e.group)
}

// down is the error of a decision or a read. Nothing was counted.
func (e *ended) down() error { return fmt.Errorf("%w: %w", limiter.ErrClusterDown, e.elsewhere()) }

func (e *ended) Decide([]engine.Op, []engine.Decision) error       { return e.down() }
func (e *ended) DecideAtomic([]engine.Op, []engine.Decision) error { return e.down() }
func (e *ended) ReadIndex() error                                  { return e.down() }
func (e *ended) Clear() error                                      { return e.down() }

func (e *ended) AddNode(string, string) error    { return e.elsewhere() }
func (e *ended) RemoveNode(string) error         { return e.elsewhere() }
func (e *ended) TransferLeadership(string) error { return e.elsewhere() }

// Backup fails, because a backup without a group is none.
func (e *ended) Backup() (*limiter.Backup, error) { return nil, e.elsewhere() }

// LookAtMembers does nothing, because the group learns nothing here any more.
func (e *ended) LookAtMembers() {}

func (e *ended) Topology() *limiter.Topology { return &e.last }
func (e *ended) StaleFor() time.Duration     { return limiter.UnknownAge }

// Snapshot and Save do nothing, because the directory of the group stays as it is.
func (e *ended) Snapshot() error     { return nil }
func (e *ended) Save() error         { return nil }
func (e *ended) LastSave() time.Time { return time.Time{} }

func (e *ended) Now() engine.Stamp                         { return engine.Stamp{} }
func (e *ended) Inspect([]byte) (engine.Info, bool)        { return engine.Info{}, false }
func (e *ended) Len() int64                                { return 0 }
func (e *ended) RandomKey() []byte                         { return nil }
func (e *ended) BlocksEverywhere() engine.BlocksEverywhere { return engine.BlocksEverywhere{} }
func (e *ended) FromBlock([]byte) engine.FromBlock         { return engine.FromBlock{} }
func (e *ended) Top(engine.Verdict, int) []engine.Heavy    { return nil }
func (e *ended) Policies() *engine.Policies                { return new(engine.Policies) }
func (e *ended) SharedVersion() uint64                     { return 0 }
func (e *ended) Shared() *engine.Shared                    { return &engine.Shared{Policies: new(engine.Policies)} }
func (e *ended) Stats() engine.Stats {
	return engine.Stats{MaxMemoryBytes: e.options.Table.MaxMemoryBytes} // the other groups may use it
}
func (e *ended) Advance(time.Duration) bool       { return true }
func (e *ended) Digest() (index, hash uint64)     { return 0, 0 }
func (e *ended) Storage() (limiter.Storage, bool) { return raftstore.StorageOf(&e.options), true }
func (e *ended) Consensus() limiter.Consensus     { return limiter.Consensus{} }

func (e *ended) Scan(uint64, int, func([]byte, engine.Algorithm)) uint64 { return 0 }
