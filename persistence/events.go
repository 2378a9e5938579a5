package persistence

import (
	"math"
	"sync"

	"github.com/weir-project/weir/engine"
)

// savedEvents says which events are on disk. A reader sees no other events: after a crash another event might have the
// cursor of one that the reader has seen.
type savedEvents struct {
	mu     sync.Mutex
	newest uint64
	wake   chan struct{} // closed when newest changes; nil: nobody has asked
}

// saved records that the events up to a cursor are on disk.
func (s *savedEvents) saved(cursor uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == cursor {
		return
	}
	if s.newest = cursor; s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

func (s *savedEvents) get() (newest uint64, wake <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake == nil {
		s.wake = make(chan struct{})
	}
	return s.newest, s.wake
}

// newestEvent returns the cursor of the newest event.
func (n *Node) newestEvent() uint64 {
	_, at, _ := n.table.Events(math.MaxInt64, 0)
	return at.Last
}

// Events reads the log of events; see engine.Table.Events. With a data directory it reads only events that are saved.
func (n *Node) Events(_ int, after uint64, most int) ([]engine.Event, engine.EventsPosition, <-chan struct{}) {
	if n.store == nil {
		return n.table.Events(after, most)
	}
	newest, wake := n.events.get()
	list, at, _ := n.table.Events(after, most)
	for len(list) > 0 && list[len(list)-1].Cursor > newest {
		list = list[:len(list)-1]
	}
	at.Last = max(min(at.Last, newest), at.Dropped())
	return list, at, wake
}

// EventsBefore returns the cursor of the newest event before a time; see engine.Table.EventsBefore.
func (n *Node) EventsBefore(_ int, atMs int64) uint64 { return n.table.EventsBefore(atMs) }
