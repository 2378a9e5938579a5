package connlimit

import "container/list"

// kind is why a connection can be evicted.
type kind uint8

const (
	unproven kind = iota
	idle
	kinds
)

// Slot is the place of one connection in a Table. Its methods may be called from any
// goroutine, also after the connection was evicted.
type Slot struct {
	table *Table
	of    *source
	cut   func()

	// What follows is guarded by table.mu.
	inFlight int
	freed    bool
	kind     kind
	at       *list.Element // in of.slots[kind]; nil: not to be evicted
	since    uint64        // the order of arriving there
}

// Begin says that a request is in flight: the connection is not evicted before an End for
// each Begin. A connection that is never to be evicted, such as one that has logged in,
// calls Begin alone.
func (s *Slot) Begin() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.inFlight++; !s.freed {
		s.table.unlist(s)
	}
}

// End says that a request that has begun is answered.
func (s *Slot) End() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.inFlight--; s.inFlight == 0 && !s.freed {
		s.table.list(s, idle)
	}
}

// Release frees the slot of a connection that is closed. Further calls do nothing.
func (s *Slot) Release() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.drop(s)
}
