package leadership

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

var errNobodyUp = errors.New("no other voter is up")

// HandOver transfers leadership to another member. It first completes the entries in flight and holds back new ones,
// so that no caller gets an unknown outcome.
func (l *Leadership) HandOver(to raft.Server) error {
	r := l.Current.Load()
	if r == nil {
		return limiter.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(l.Life.Ctx, l.Heartbeat)
	defer cancel()
	l.Queue.Pause(ctx)
	defer l.Queue.Resume()
	err := l.Raft.Change(l.Raft.LeadershipTransferToServer(to.ID, to.Address))
	if err == nil {
		l.Current.CompareAndSwap(r, nil)
	}
	return err
}

// Successor returns the best next leader: the voter that is up and has applied most. The Raft library would also
// choose a member that does not answer. It can then refuse every entry until this node is restarted (hashicorp/raft
// issue 696). A member that has announced its stop comes last, but is not excluded. In a rolling restart it may be
// back before its next status is due.
func (l *Leadership) Successor() (best raft.Server, ok bool) {
	var most uint64
	var stops bool
	for _, s := range l.Raft.Servers() {
		last, heard := l.Peers.Last(string(s.ID))
		if s.Suffrage != raft.Voter || !heard || time.Since(last.At) > 2*timers.StatusEvery {
			continue
		}
		stopping := l.Peers.IsStopping(string(s.ID))
		better := stops && !stopping || stops == stopping && last.Index > most
		if !ok || better {
			best, most, stops, ok = s, last.Index, stopping, true
		}
	}
	return best, ok
}

// Resign transfers leadership before the node closes, so that callers need not wait for an election.
func (l *Leadership) Resign() {
	to, ok := l.Successor()
	if l.Current.Load() == nil || !ok {
		return
	}
	done := make(chan error, 1)
	go func() { done <- l.HandOver(to) }()
	select {
	case err := <-done:
		if err != nil && !l.Peers.IsStopping(string(to.ID)) {
			l.Log.Warn("leadership transfer failed", "to", to.ID, "error", err)
		}
	case <-time.After(timers.ElectionTimeout(l.Heartbeat)):
	}
}

// Transfer transfers leadership to a member, or to Successor if to is empty.
func (l *Leadership) Transfer(to string) error {
	if to == l.Self {
		return nil
	}
	if to == "" {
		s, ok := l.Successor()
		if !ok {
			return errNobodyUp
		}
		return l.HandOver(s)
	}
	s := l.Raft.ServerCalled(to)
	if s == nil {
		return fmt.Errorf("no node %q in this cluster", to)
	}
	if s.Suffrage != raft.Voter {
		return fmt.Errorf("node %q does not vote in this group", to)
	}
	return l.HandOver(*s)
}

// handoverWatch detects a leader that refuses every entry because it believes that it is transferring leadership. An
// idle leader proposes a tick every second, and one that cannot serve yet proposes barriers, so refusals always occur.
// The Raft library may keep this belief until the node leads again (hashicorp/raft issue 696).
type handoverWatch struct {
	First atomic.Pointer[Refusal] // the first refusal in a row; nil: the last entry was not refused
}

// Refusal is an entry that the Raft library has refused, because a handover was in progress.
type Refusal struct {
	At   time.Time
	Term uint64
}

// Observe records the Raft library's result for an entry, in the present term of this node.
func (h *handoverWatch) Observe(err error, term uint64) {
	first := h.First.Load()
	switch {
	case !errors.Is(err, raft.ErrLeadershipTransferInProgress):
		if first != nil {
			h.First.Store(nil)
		}
	case first == nil || first.Term != term:
		h.First.CompareAndSwap(first, &Refusal{time.Now(), term})
	}
}

// Stuck reports whether entries have been refused for longer than limit in the present term of this node. A refusal of
// an earlier term says nothing: another node has led since.
func (h *handoverWatch) Stuck(limit time.Duration, term uint64) bool {
	first := h.First.Load()
	return first != nil && first.Term == term && time.Since(first.At) > limit
}
