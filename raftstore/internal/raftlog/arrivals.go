package raftlog

import (
	"sync"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/persistence"
)

// Arrivals is a log store that records when each entry reached this node. A new leader's clock continues from the
// arrival of the last entry, not from its application. A follower applies the last entries of a dead leader only
// after the next election.
type Arrivals struct {
	*Log
	source persistence.Source

	mu          sync.Mutex
	term        uint64 // the newest term that was stored
	openedRawNs int64
	openedWith  uint64 // entries up to this index were in the log when it was opened
	applied     uint64 // the newest entry that Of was called for
	ring        []Arrival
}

// MaxArrivals bounds the entries whose arrival is remembered. It covers the entries between the last one applied and
// the end of the log. An older entry counts as arrived when it is applied, which gives limiters less time and never
// more.
const MaxArrivals = 4096

// leastArrivals is the length of the ring at first. It doubles when more entries wait for their application, so that an
// idle group needs little memory. It never shrinks: a group that was behind once will be again, and its ring takes at
// most 96 KiB.
const leastArrivals = 64

// Arrival is the time at which an entry reached this node, on its monotonic clock.
type Arrival struct {
	Index uint64
	RawNs int64
	// Live means that the entry arrived in the term in which it was proposed. Any other entry was stamped long before
	// it arrived, or arrived in an earlier process.
	Live bool
}

// NoteArrivals returns a log store on log that records arrivals with the clock source.
func NoteArrivals(log *Log, source persistence.Source) (*Arrivals, error) {
	last, err := log.LastIndex()
	if err != nil {
		return nil, err
	}
	term, _ := log.GetUint64(KeyTerm) // a new log has no term; the library reports any other error
	return &Arrivals{Log: log, source: source, term: term, openedRawNs: source.MonotonicNs(), openedWith: last,
		ring: make([]Arrival, leastArrivals)}, nil
}

// SetUint64 stores a value, and remembers the term.
func (a *Arrivals) SetUint64(key []byte, value uint64) error {
	if string(key) == string(KeyTerm) {
		a.mu.Lock()
		a.term = value
		a.mu.Unlock()
	}
	return a.Log.SetUint64(key, value)
}

func (a *Arrivals) StoreLog(l *raft.Log) error { return a.StoreLogs([]*raft.Log{l}) }

func (a *Arrivals) StoreLogs(ls []*raft.Log) error {
	a.note(ls)
	return a.Log.StoreLogs(ls)
}

func (a *Arrivals) note(ls []*raft.Log) {
	rawNs := a.source.MonotonicNs()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range ls {
		// This write replaces the entries from l.Index on.
		a.openedWith, a.applied = min(a.openedWith, l.Index-1), min(a.applied, l.Index-1)
		for a.ring[l.Index%uint64(len(a.ring))].Index > a.applied && len(a.ring) < MaxArrivals {
			a.grow()
		}
		a.ring[l.Index%uint64(len(a.ring))] = Arrival{l.Index, rawNs, l.Term == a.term}
	}
}

// grow doubles the ring, because an entry would replace one that is not applied yet.
func (a *Arrivals) grow() {
	ring := make([]Arrival, 2*len(a.ring))
	for _, one := range a.ring {
		if one.Index > 0 { // an empty place must not replace an entry
			ring[one.Index%uint64(len(ring))] = one
		}
	}
	a.ring = ring
}

// Of returns the arrival of an entry that is being applied. The leader stamps an entry before it sends the entry, so
// the time since the arrival is never more than the time since the stamp.
func (a *Arrivals) Of(index uint64) Arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied = max(a.applied, index)
	if known := a.ring[index%uint64(len(a.ring))]; known.Index == index {
		return known
	}
	if index <= a.openedWith {
		return Arrival{Index: index, RawNs: a.openedRawNs}
	}
	return Arrival{Index: index, RawNs: a.source.MonotonicNs(), Live: true} // too long ago to be remembered
}
