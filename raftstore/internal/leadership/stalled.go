package leadership

import (
	"time"

	"github.com/weir-project/weir/limiter"
)

const (
	// handOverAgain is the least time between two transfers of leadership for the same reason.
	handOverAgain = time.Minute
)

// CaughtUp is the number of entries that a node may still lack when it is promoted. The node receives these entries
// before the promotion is committed.
const CaughtUp = 64

// stallCheck detects members that are up and get no entries. The Raft library can permanently stop replicating to a
// follower after its disk was slow (hashicorp/raft issue 612). It can also send a follower one image after another
// (issue 697). A new leader begins replication again with every member, so this leader transfers leadership.
type stallCheck struct {
	limit time.Duration
	since map[string]progress
	moved time.Time // time of the last transfer for this reason
}

// progress is the last index that a member has applied, and the time when this node noticed it.
type progress struct {
	index uint64
	at    time.Time
}

// check records the progress of the members other than self. It returns a member that is up but has not progressed for
// limit while it lacks more than CaughtUp entries.
func (s *stallCheck) check(self string, commit uint64, members []limiter.Member) (id string, yes bool) {
	if s.since == nil {
		s.since = map[string]progress{}
	}
	for _, m := range members {
		if m.ID == self {
			continue
		}
		known, ok := s.since[m.ID]
		if !ok || !m.Up || m.AppliedIndex != known.index || m.AppliedIndex+CaughtUp >= commit {
			s.since[m.ID] = progress{m.AppliedIndex, time.Now()}
			continue
		}
		if time.Since(known.at) > s.limit {
			return m.ID, true
		}
	}
	return "", false
}

// LeaveIfSlow transfers leadership when a member has stalled, or when the disk of this leader is slow. It starts a
// goroutine for the transfer, which waits for the Raft library, which may wait for the disk.
func (l *Leadership) LeaveIfSlow() {
	if l.leaving.Busy() {
		return
	}
	l.lagging.limit = l.StalledAfter
	if !l.leaveStalledMember(&l.lagging) {
		l.leaveSlowDisk(&l.slowDisk)
	}
}

// leaveStalledMember begins a transfer of leadership when a member has stalled, and reports whether it does.
func (l *Leadership) leaveStalledMember(s *stallCheck) bool {
	if l.Current.Load() == nil {
		s.since = nil
		return false
	}
	id, yes := s.check(l.Self, l.Raft.CommitIndex(), l.Members())
	if !yes || time.Since(s.moved) < handOverAgain {
		return false
	}
	s.since = nil
	l.Log.Error("a node is up but receives no entries; transferring leadership", "node", id)
	return l.leaving.Go(l.Life.Go, func() {
		if err := l.transferBut(id); err != nil {
			l.Log.Error("leadership transfer failed", "error", err)
			return
		}
		s.moved = time.Now()
	})
}

// transferBut transfers leadership to a member other than the stalled one.
func (l *Leadership) transferBut(id string) error {
	for _, m := range l.Members() {
		if m.ID != id && m.ID != l.Self && m.Voter && m.Up {
			return l.Transfer(m.ID)
		}
	}
	return errNobodyUp
}
