package connlimit

import "container/list"

// kind is the reason why a connection can be evicted.
type kind uint8

const (
	unproven kind = iota
	idle
	kinds
)

// Slot belongs to one connection in a Table. Its methods may be called from any goroutine, also after the connection
// was evicted.
type Slot struct {
	table *Table
	of    *source
	cut   func()

	// table.mu guards the following fields.
	inFlight int
	freed    bool
	kind     kind
	at       *list.Element // in of.slots[kind]; nil: cannot be evicted
	since    uint64        // Table.arrived at that time: the lowest is the oldest
}

// Begin records that a request is in flight. The connection is not evicted before an End for each Begin. A connection
// that must never be evicted, such as a logged-in one, calls Begin alone.
func (s *Slot) Begin() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.inFlight++; !s.freed {
		s.table.unlist(s)
	}
}

// End records that a request has been answered.
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
