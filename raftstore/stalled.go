package raftstore

import (
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// stalledAfter is how long a member may answer calls and yet apply nothing new
	// while others do: far longer than an image takes to be sent and loaded.
	stalledAfter = 20 * time.Second
	// handOverAgain is how long a leader waits before it tries that remedy again.
	handOverAgain = time.Minute
)

// stallCheck notices members that are up and get no entries. The Raft library can stop
// replicating to a follower for good after its disk was slow (hashicorp/raft issue
// 612), and can send it one image after another (issue 697). Another leader starts
// afresh with everyone, so this one steps aside.
type stallCheck struct {
	limit time.Duration
	since map[string]progress
	moved time.Time // when leadership was last handed over for this
}

// progress is the last index a member was seen to reach.
type progress struct {
	index uint64
	at    time.Time
}

// check takes note of how far the members are and returns one that has stalled.
func (s *stallCheck) check(self string, commit uint64, members []limiter.Member) (id string, yes bool) {
	if s.since == nil {
		s.since = map[string]progress{}
	}
	for _, m := range members {
		if m.ID == self {
			continue
		}
		known, ok := s.since[m.ID]
		if !ok || !m.Up || m.AppliedIndex != known.index || m.AppliedIndex+caughtUp >= commit {
			s.since[m.ID] = progress{m.AppliedIndex, time.Now()}
			continue
		}
		if time.Since(known.at) > s.limit {
			return m.ID, true
		}
	}
	return "", false
}

// watchStalled looks for stalled members and a slow disk until the node closes. The
// watchdog must not do this: a handover waits for the Raft library, which may wait for the
// disk.
func (l *leadership) watchStalled() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	lagging := stallCheck{limit: l.options.StalledAfter}
	var disk slowDisk
	for {
		select {
		case <-tick.C:
			l.leaveStalledMember(&lagging)
			l.leaveSlowDisk(&disk)
		case <-l.stop:
			return
		}
	}
}

// leaveStalledMember hands leadership over when a member has stalled.
func (l *leadership) leaveStalledMember(s *stallCheck) {
	if l.current.Load() == nil {
		s.since = nil
		return
	}
	id, yes := s.check(l.options.NodeID, l.raft.CommitIndex(), *l.peers.members.Load())
	if !yes || time.Since(s.moved) < handOverAgain {
		return
	}
	s.since = nil
	l.log.Error("a node is up but gets no entries; handing leadership over", "node", id)
	if err := l.transferBut(id); err != nil {
		l.log.Error("leadership could not be handed over", "error", err)
		return
	}
	s.moved = time.Now()
}

// transferBut hands leadership to a member other than the one that has stalled.
func (l *leadership) transferBut(id string) error {
	for _, m := range *l.peers.members.Load() {
		if m.ID != id && m.ID != l.options.NodeID && m.Voter && m.Up {
			return l.transfer(m.ID)
		}
	}
	return errNobodyUp
}
