package raftstore

import (
	"sync"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/persistence"
)

// arrivals is a log store that records when each entry reached this node. A new
// leader's clock goes on from the arrival of the last entry, not from when the entry was
// applied: a follower applies the last entries of a dead leader only after the next
// election.
type arrivals struct {
	*guardedLog
	source persistence.Source

	mu          sync.Mutex
	term        uint64 // the newest term that was stored
	openedRawNs int64
	openedWith  uint64 // entries up to this index were in the log when it was opened
	ring        [maxArrivals]arrival
}

// maxArrivals bounds the entries whose arrival is remembered: as many as there can be
// between the end of the log and the last entry applied. An older entry counts as
// arrived when it is applied, which gives limiters less time and never more.
const maxArrivals = 4096

// arrival says when an entry reached this node, on its monotonic clock.
type arrival struct {
	index uint64
	rawNs int64
	// live: the entry arrived in the term in which it was proposed. Any other entry was
	// stamped long before it arrived, or arrived in an earlier process.
	live bool
}

func noteArrivals(log *guardedLog, source persistence.Source) (*arrivals, error) {
	last, err := log.LastIndex()
	if err != nil {
		return nil, err
	}
	term, _ := log.GetUint64(keyCurrentTerm) // a new log has no term; the library reports any other error
	return &arrivals{guardedLog: log, source: source, term: term, openedRawNs: source.MonotonicNs(), openedWith: last}, nil
}

// SetUint64 takes note of the term.
func (a *arrivals) SetUint64(key []byte, value uint64) error {
	if string(key) == string(keyCurrentTerm) {
		a.mu.Lock()
		a.term = value
		a.mu.Unlock()
	}
	return a.guardedLog.SetUint64(key, value)
}

func (a *arrivals) StoreLog(l *raft.Log) error { return a.StoreLogs([]*raft.Log{l}) }

func (a *arrivals) StoreLogs(ls []*raft.Log) error {
	a.note(ls)
	return a.guardedLog.StoreLogs(ls)
}

func (a *arrivals) note(ls []*raft.Log) {
	rawNs := a.source.MonotonicNs()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range ls {
		a.openedWith = min(a.openedWith, l.Index-1) // this write replaces what followed
		a.ring[l.Index%maxArrivals] = arrival{l.Index, rawNs, l.Term == a.term}
	}
}

// of returns the arrival of an entry that is being applied. The leader stamps an entry
// before it sends it, so the time since the arrival is never more than the time since the
// stamp.
func (a *arrivals) of(index uint64) arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.ring[index%maxArrivals]; known.index == index {
		return known
	}
	if index <= a.openedWith {
		return arrival{index: index, rawNs: a.openedRawNs}
	}
	return arrival{index: index, rawNs: a.source.MonotonicNs(), live: true} // too long ago to be remembered
}
