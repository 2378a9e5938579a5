package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// handOver makes another member the leader. What is under way is finished first, and
// what comes meanwhile waits, so that no caller is left in doubt.
func (l *leadership) handOver(to raft.Server) error {
	r := l.current.Load()
	if r == nil {
		return failure.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.options.Heartbeat)
	defer cancel()
	l.queue.Pause(ctx)
	defer l.queue.Resume()
	err := l.raft.Change(l.raft.LeadershipTransferToServer(to.ID, to.Address))
	if err == nil {
		l.current.CompareAndSwap(r, nil)
	}
	return err
}

// successor is the member that had best lead next: one that votes, is up and has
// applied most. The Raft library would also take one that does not answer, and can
// then refuse every entry until it is restarted (hashicorp/raft issue 696).
// A member that has said that it stops comes last, rather than never: in a rolling restart it
// is back before this node asks it again.
func (l *leadership) successor() (best raft.Server, ok bool) {
	var most uint64
	var stops bool
	for _, s := range l.raft.Servers() {
		last, heard := l.peers.last(string(s.ID))
		if s.Suffrage != raft.Voter || !heard || time.Since(last.at) > 2*timers.StatusEvery {
			continue
		}
		stopping := l.peers.isStopping(string(s.ID))
		better := stops && !stopping || stops == stopping && last.Index > most
		if !ok || better {
			best, most, stops, ok = s, last.Index, stopping, true
		}
	}
	return best, ok
}

// resign hands leadership over before the node closes, so that nobody waits for
// an election.
func (l *leadership) resign() {
	to, ok := l.successor()
	if l.current.Load() == nil || !ok {
		return
	}
	done := make(chan error, 1)
	go func() { done <- l.handOver(to) }()
	select {
	case err := <-done:
		if err != nil && !l.peers.isStopping(string(to.ID)) {
			l.log.Warn("leadership could not be handed over", "to", to.ID, "error", err)
		}
	case <-time.After(l.electionTimeout()):
	}
}

// transfer makes a member the leader: the most advanced when to is empty.
func (l *leadership) transfer(to string) error {
	if to == l.options.NodeID {
		return nil
	}
	if to == "" {
		s, ok := l.successor()
		if !ok {
			return errNobodyUp
		}
		return l.handOver(s)
	}
	s := l.raft.ServerCalled(to)
	if s == nil {
		return fmt.Errorf("no node %q in this cluster", to)
	}
	return l.handOver(*s)
}

// handoverWatch notices a leader that refuses every entry because it believes that
// it is handing leadership over. An idle leader proposes a tick every second, so
// there is always something to be refused.
type handoverWatch struct{ since atomic.Pointer[time.Time] } // of the first refusal in a row, with its monotonic reading; nil: none

// saw takes note of what the Raft library said of an entry.
func (h *handoverWatch) saw(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		now := time.Now()
		h.since.CompareAndSwap(nil, &now)
	} else if h.since.Load() != nil {
		h.since.Store(nil)
	}
}

func (h *handoverWatch) stuck(limit time.Duration) bool {
	since := h.since.Load()
	return since != nil && time.Since(*since) > limit
}
