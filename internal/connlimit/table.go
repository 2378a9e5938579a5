// Package connlimit bounds the connections of a port, so that no source of connections excludes the others.
//
// A [Table] knows the state of each connection:
//
//   - unproven: no request, handshake or login is complete yet
//   - idle: the connection has proved itself, and no request is in flight
//   - busy: a request is in flight
//
// When the table is full, a new connection evicts the oldest unproven connection of the source that has most of them.
// If no source has several, and some source has several idle connections, or if none is unproven, it evicts the longest
// idle connection of the source that has most of those. Busy connections are never evicted. A few slots are reserved,
// so that a single source cannot take the last ones.
package connlimit

import (
	"container/heap"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
)

// These are the errors of Admit.
var (
	ErrFull       = errors.New("every connection that could be evicted is busy")
	ErrSourceFull = errors.New("the source has all the connections it may have, and all are busy")
)

const (
	// reservedFraction of the slots of a table is not available to any single source. A table of 128 keeps 8 for
	// others. A table of fewer than 16 reserves none.
	reservedFraction = 16
	// maxReserved bounds the reserved slots, so that a proxy with all clients of a large table loses few.
	maxReserved = 64
)

// Table is the connection table of one port. Its methods may be called from any goroutine.
type Table struct {
	most      int // connections
	perSource int // connections of one source; 0: all but the reserved slots
	evicted   *atomic.Int64

	mu      sync.Mutex
	open    int
	arrived uint64 // numbers connections and their idle times in the order of their beginning
	sources map[netip.Addr]*source
	ranked  [kinds]ranking
}

// New returns a table of at most most connections, and perSource connections of one source. 0 for perSource means no
// separate bound. The table counts in evicted the connections that it evicts.
func New(most, perSource int, evicted *atomic.Int64) *Table {
	t := &Table{most: most, perSource: perSource, evicted: evicted, sources: make(map[netip.Addr]*source)}
	for k := range t.ranked {
		t.ranked[k].kind = kind(k)
	}
	return t
}

// Admit gives a connection from a source a slot. Its error is ErrFull or ErrSourceFull. If it takes the slot from
// another connection, it calls the cut function of that connection, which closes it and must not block. The owner of
// an admitted connection calls Release after it is closed, also after a cut.
func (t *Table) Admit(from netip.Addr, cut func()) (*Slot, error) {
	t.mu.Lock()
	victim, err := t.selectVictim(from)
	if err != nil {
		t.mu.Unlock()
		return nil, err
	}
	if victim != nil {
		t.evicted.Add(1)
		t.drop(victim)
	}
	s := t.add(from, cut)
	t.mu.Unlock()
	if victim != nil {
		victim.cut()
	}
	return s, nil
}

// selectVictim returns the slot that a connection from a source takes over, or nil if a slot is free. The caller holds
// mu.
func (t *Table) selectVictim(from netip.Addr) (victim *Slot, err error) {
	own := t.sources[from]
	switch bound := t.most - min(t.most/reservedFraction, maxReserved); {
	case t.perSource > 0 && from.IsValid() && own.total() >= t.perSource: // the clients of a Unix socket have no source
		victim, err = own.victim(), ErrSourceFull
	case own.total() >= bound:
		victim, err = own.victim(), ErrFull
	case t.open >= t.most:
		victim, err = t.victim(own), ErrFull
	}
	if victim != nil {
		err = nil
	}
	return victim, err
}

// victim returns the slot that a connection of the source own takes over in a full table, or nil if all connections are
// busy. The caller holds mu.
func (t *Table) victim(own *source) *Slot {
	silent, hoarder := t.ranked[unproven].heaviest(own), t.ranked[idle].heaviest(own)
	// The only unproven connection of a source may be about to send its request. A source with several idle connections
	// can spare one more easily.
	if silent == nil || silent.count(unproven) == 1 && hoarder.count(idle) > 1 {
		return hoarder.oldest(idle)
	}
	return silent.oldest(unproven)
}

// add assigns a free slot. The caller holds mu.
func (t *Table) add(from netip.Addr, cut func()) *Slot {
	of := t.sources[from]
	if of == nil {
		of = &source{addr: from, rank: [kinds]int{unranked, unranked}}
		t.sources[from] = of
	}
	of.open++
	t.open++
	s := &Slot{table: t, of: of, cut: cut}
	t.list(s, unproven)
	return s
}

// drop frees a slot, once. The caller holds mu.
func (t *Table) drop(s *Slot) {
	if s.freed {
		return
	}
	s.freed = true
	t.unlist(s)
	t.open--
	if s.of.open--; s.of.open == 0 {
		delete(t.sources, s.of.addr)
	}
}

// list makes a slot available for eviction. The caller holds mu.
func (t *Table) list(s *Slot, as kind) {
	t.arrived++
	s.since, s.kind = t.arrived, as
	s.at = s.of.slots[as].PushBack(s)
	t.rerank(s.of, as)
}

// unlist protects a slot from eviction. The caller holds mu.
func (t *Table) unlist(s *Slot) {
	if s.at == nil {
		return
	}
	s.of.slots[s.kind].Remove(s.at)
	s.at = nil
	t.rerank(s.of, s.kind)
}

// rerank updates the ranking after a change of a source's slots of a kind. The caller holds mu.
func (t *Table) rerank(of *source, k kind) {
	ranked := &t.ranked[k]
	switch at, n := of.rank[k], of.count(k); {
	case at == unranked && n > 0:
		heap.Push(ranked, of)
	case at != unranked && n == 0:
		heap.Remove(ranked, at)
	case at != unranked:
		heap.Fix(ranked, at)
	}
}

// Len returns the number of connections.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}
