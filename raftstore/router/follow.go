package router

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/away"
)

// The first group decides the changes of policies and blocks everywhere, and counts them; see engine.OpFollow. A node
// brings another group to the first group's version by a batch of the differences. The batch is carried out only if the
// group still has the version that the node compared. So nodes may bring a group at the same time, and send a batch
// again whose outcome is unknown.
//
// The node that took a command brings all groups before it answers. What is missing then, the node that leads the first
// group brings later.

const (
	// compareEvery is how often the node that leads the first group compares the versions of all groups, and compareAll
	// how many of these times it compares the items as well. Items differ at an equal version after a group changed
	// alone, for an older node, or when the clocks of two groups part.
	compareEvery = 500 * time.Millisecond
	compareAll   = 20
	// bringFor is how long a command waits for the groups that have no leader, and bringPause the pause between two
	// attempts.
	bringFor   = 2 * time.Second
	bringPause = 20 * time.Millisecond
	// batchOps and batchBytes bound a batch of differences.
	batchOps   = 512
	batchBytes = 1 << 20
)

// errRefused is the status with which a group refused a change of a shared item.
type errRefused engine.Status

func (e errRefused) Error() string {
	if engine.Status(e) == engine.OutOfMemory {
		return "the memory of the group is full"
	}
	return fmt.Sprintf("the group refused the change with status %d", engine.Status(e))
}

var errLost = errors.New("the first group has lost changes that this group has")

var errBehind = errors.New("other nodes changed the group at the same time")

// sharedAt returns the shared items of the first group at a version or later.
func (r *Router) sharedAt(version uint64) (*engine.SharedItems, error) {
	first, err := r.group(0)
	if err == nil && first.SharedVersion() < version {
		err = first.ReadIndex()
	}
	if err != nil {
		return nil, err
	}
	return first.Shared(), nil
}

// bringAnywhere brings a group to the first group's version, on a node that has a replica of it.
func (r *Router) bringAnywhere(g reachable, want *engine.SharedItems) error {
	switch g := g.(type) {
	case Group:
		return r.bring(g, want)
	case *away.Group:
		return g.Follow(want.Version)
	}
	panic("router: a group that is neither here nor away")
}

// bring brings a group to the first group's version. It goes on for bringFor.
func (r *Router) bring(g Group, want *engine.SharedItems) (err error) {
	for end := time.Now().Add(r.bringFor); ; {
		var done bool
		done, err = r.bringOnce(g, want, nil)
		if done || errors.As(err, new(errRefused)) || time.Now().After(end) {
			return err
		}
		select {
		case <-r.stop:
			return limiter.ErrTryAgain
		case <-time.After(bringPause):
		}
	}
}

// bringOnce is one attempt of bring. After an attempt that is not done, the next one may succeed. With the last
// comparison of the group it compares all items also at the first group's version.
func (r *Router) bringOnce(g Group, want *engine.SharedItems, last *comparison) (done bool, err error) {
	have := g.Shared()
	if have.Version > want.Version {
		return true, r.ahead(have.Version)
	}
	if have.Version == want.Version && last == nil {
		return true, nil
	}
	ops := difference(want, have, last)
	if len(ops) == 0 && have.Version == want.Version {
		*last = comparison{want, have}
		return true, nil
	}
	for range maxBatches {
		n := fitting(ops)
		begin := engine.Op{Code: engine.OpFollow, Key: []byte("shared"), Cost: int64(have.Version),
			WaitNs: int64(have.Version), TTLNs: int64(have.Steps)}
		if n == len(ops) {
			begin.Cost = int64(want.Version)
		}
		batch := append([]engine.Op{begin}, ops[:n]...)
		out := make([]engine.Decision, len(batch))
		err = g.DecideAtomic(batch, out)
		switch {
		case err != nil:
			return false, err
		case out[0].Status == engine.PolicyChanged: // another node was faster, or this one lags in the group
			return false, errors.Join(errBehind, g.ReadIndex())
		}
		if err = refusal(out); err != nil || n == len(ops) {
			return err == nil, err
		}
		ops, have.Steps = ops[n:], have.Steps+1
	}
	return false, errBehind
}

// comparison is one of all items in two groups, which were equal.
type comparison struct{ want, have *engine.SharedItems }

// covers reports whether the blocks of the groups must still be equal.
func (c comparison) covers(want, have *engine.SharedItems) bool {
	if c.want == nil || !want.SameBlocks(c.want) || !have.SameBlocks(c.have) {
		return false
	}
	moved := (want.NowNs - have.NowNs) - (c.want.NowNs - c.have.NowNs)
	return max(moved, -moved) < int64(clockDifference/10)
}

// maxBatches bounds the batches that bring a group from one version to another. They have room for all shared items.
const maxBatches = 256

const _ = uint(maxBatches*batchOps - engine.MaxBlocksEverywhere - engine.MaxPolicies) // does not compile without room

// ahead is called for a group that has followed further than this node knows the first group. If the first group has
// indeed lost changes, after a lost majority, its items get a later version than any group has.
func (r *Router) ahead(version uint64) error {
	first, err := r.group(0)
	if err == nil {
		err = first.ReadIndex()
	}
	if err != nil || first.SharedVersion() >= version {
		return err
	}
	return errors.Join(errLost, renumber(first, version+1))
}

// fitting returns how many leading operations fit one batch.
func fitting(ops []engine.Op) int {
	bytes := 0
	for i := range ops {
		if p := ops[i].Policy; p != nil && p.Terms != nil {
			bytes += len(p.Terms.Append(nil))
		}
		if bytes += len(ops[i].Key) + len(ops[i].Text); i > 0 && (bytes > batchBytes || i >= batchOps) {
			return i
		}
	}
	return len(ops)
}

// followFirst gives every group the shared items of the first one, on the node that leads the first group. If groups
// are away from that node, each node does it for the groups that it leads, because every node follows the first group.
func (r *Router) followFirst() {
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	groups := make([]followed, len(r.all()))
	for n := 1; ; n++ {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.compare(groups, n%compareAll == 0)
		}
	}
}

// followed is what the node that leads the first group knows of another one.
type followed struct {
	behind bool       // at the last call of compare
	equal  comparison // the last one of all items
}

// compare brings the groups that were behind at the last call as well, because a group that was not may be about to get
// a change from the node that took the command. With all it compares the items of all groups.
func (r *Router) compare(groups []followed, all bool) {
	first, err := r.group(0)
	if err != nil || !r.mayCompare(first) {
		clear(groups)
		return
	}
	var want *engine.SharedItems
	for i, g := range r.live() {
		if i == 0 {
			continue
		}
		if r.replicas > 0 && !g.Topology().Leads() {
			groups[i] = followed{}
			continue
		}
		state, last := &groups[i], (*comparison)(nil)
		was := state.behind
		state.behind = g.SharedVersion() != first.SharedVersion()
		if all {
			last = &state.equal
		} else if !was || !state.behind {
			continue
		}
		if want == nil {
			if first.ReadIndex() != nil {
				return
			}
			want = first.Shared()
		}
		if _, err := r.bringOnce(g, want, last); err != nil {
			r.log.Info("a group does not have all policies and blocks EVERYWHERE of the first group yet",
				"group", i, "error", err)
		}
	}
}

// mayCompare reports whether this node compares groups with the first one. The leader of the first group begins the
// order of shared items.
func (r *Router) mayCompare(first Group) bool {
	if first.Topology().Leads() {
		return beginOrder(first) == nil
	}
	return r.replicas > 0 && first.SharedVersion() > 0
}
