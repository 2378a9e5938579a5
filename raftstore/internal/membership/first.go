package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

// The first of several groups decides which nodes belong to the cluster. A node joins it first. So a member of another
// group that the first group does not have was removed from the first group, and the leader of the other group removes
// it. This check repeats, because a join may have been admitted before the removal and appended after it.

// hasNode reports whether ids has the node with this id, under the same id or as another incarnation. A node may have
// another incarnation in each group.
func hasNode(ids []string, id string) bool {
	return slices.ContainsFunc(ids, func(other string) bool { return identity.GivenID(other) == identity.GivenID(id) })
}

// answerBelongs answers Belongs on the leader.
func (m *Membership) answerBelongs(id string) error {
	r := m.Leadership.Current.Load()
	if err := m.ReadIndex(); err != nil {
		return err
	}
	if r == nil || m.Leadership.Current.Load() != r {
		return limiter.ErrNotLeader // a follower's read index does not cover configurations
	}
	switch members := consensus.IDs(m.FSM.Members()); {
	case len(members) == 0:
		return limiter.ErrTryAgain
	case slices.Contains(members, id):
		return nil
	case !hasNode(members, id) || m.FSM.Spent(id):
		return failure.ErrRemovedID
	}
	return nil
}

// Belongs asks the leader of this group whether the group has the node; see host.FirstGroup.
func (m *Membership) Belongs(id string) error { return m.Give(Order{What: belongs, ID: id}) }

// mayEnter returns an error unless the first group certainly has the node. It does not return ErrRemovedID, which would
// make the node ask again under another id.
func (m *Membership) mayEnter(id string) error {
	if m.First == nil {
		return nil
	}
	switch err := m.First.Belongs(id); {
	case errors.Is(err, failure.ErrRemovedID):
		return fmt.Errorf("the first group does not have node %q", id)
	case err != nil:
		return limiter.ErrTryAgain
	}
	return nil
}

// replaceIncarnation removes an earlier incarnation of a node that asks to join, if the first group has replaced it.
// The node then asks again. The first group has decided that the earlier incarnation may go.
func (m *Membership) replaceIncarnation(earlier, id string) error {
	first := m.First.Members()
	if slices.Contains(first, earlier) || !slices.Contains(first, id) {
		return limiter.ErrTryAgain // this node's copy of the first group lags, or id is the earlier one
	}
	return errors.Join(m.removeNode(earlier, 0), limiter.ErrTryAgain)
}

// outsiders returns the members of this group that the first group may not have, by this node's copy of that group.
func (m *Membership) outsiders() []raft.Server {
	if m.First == nil || m.Leadership.Current.Load() == nil {
		return nil
	}
	first := m.First.Members()
	return slices.DeleteFunc(slices.Clone(m.Raft.Servers()), func(s raft.Server) bool {
		return len(first) == 0 || slices.Contains(first, string(s.ID))
	})
}

// RemoveOutsiders removes the members of this group that the first group does not have. It asks the leader of the first
// group about each of them, because this node's copy of that group may lag. One pass runs at a time, and the next one
// repeats what failed. It cannot remove a node that is joining: the node was in a committed configuration of the first
// group before it asked to join this one, and found is older than the question.
func (m *Membership) RemoveOutsiders() {
	if m.removing.Busy() {
		return
	}
	found := m.outsiders()
	if len(found) == 0 {
		return
	}
	m.removing.Go(m.Life.Go, func() {
		for _, s := range found {
			m.removeOutsider(string(s.ID))
		}
	})
}

func (m *Membership) removeOutsider(id string) {
	if !errors.Is(m.First.Belongs(id), failure.ErrRemovedID) {
		return
	}
	m.Log.Warn("a member of this group was removed from the first group, so it leaves this one", "node", id)
	if err := m.removeNode(id, 0); err != nil {
		m.Log.Warn("the member could not be removed", "node", id, "error", err)
	}
}

// leaderOf returns the address of the leader that one of the statuses names, or "".
func leaderOf(found []host.Status) string {
	for _, s := range found {
		if s.LeaderAddr != "" {
			return s.LeaderAddr
		}
	}
	return ""
}

// leaderKnownToFirst asks the members of the first group for the leader of this group. All nodes of --join may have
// been removed since this node joined the first group. The answers are never used to bootstrap the group: only the
// nodes of --join bootstrap it.
func (m *Membership) leaderKnownToFirst() string {
	if m.First == nil {
		return ""
	}
	found, _ := m.askStatus(m.First.Addrs())
	return leaderOf(found)
}
