package sim

import (
	"sync"
	"time"

	"github.com/weir-project/weir/internal/faults"
)

// maxStop bounds how long a process waits at a failpoint, because clients need an answer in time.
const maxStop = 3 * time.Second

// stop is a failpoint at which a process waits.
type stop struct {
	of       *process
	at       faults.Point
	skip     int // how often it is passed before the wait
	reached  chan struct{}
	released chan struct{}
	once     sync.Once
}

// stops are the active failpoints of one process.
type stops struct {
	mu  sync.Mutex
	all []*stop
}

// stopAt makes the process wait at a failpoint after it has passed it skip times, until the stop is released.
func (p *process) stopAt(at faults.Point, skip int) *stop {
	s := &stop{of: p, at: at, skip: skip, reached: make(chan struct{}), released: make(chan struct{})}
	p.stops.mu.Lock()
	defer p.stops.mu.Unlock()
	p.stops.all = append(p.stops.all, s)
	return s
}

// failpoint waits if a stop is set. The caller must not hold a mutex.
func (p *process) failpoint(at faults.Point) {
	for _, s := range p.stops.due(at) {
		select {
		case <-s.released:
		case <-p.dead:
		case <-time.After(maxStop):
		}
	}
}

// due returns the stops that apply now.
func (s *stops) due(at faults.Point) (due []*stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.at != at || one.over() {
			continue
		}
		if one.skip > 0 {
			one.skip--
			continue
		}
		due = append(due, one)
		if !one.isReached() {
			close(one.reached)
		}
	}
	return due
}

func (s *stop) over() bool {
	select {
	case <-s.released:
		return true
	default:
		return false
	}
}

func (s *stop) isReached() bool {
	select {
	case <-s.reached:
		return true
	default:
		return false
	}
}

// release lets the process continue, and not stop again.
func (s *stop) release() { s.once.Do(func() { close(s.released) }) }

// within reports whether a process has reached the failpoint in time.
func (s *stop) within(limit time.Duration) bool {
	select {
	case <-s.reached:
		return true
	case <-time.After(limit):
		return false
	}
}
