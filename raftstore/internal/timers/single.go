package timers

import "sync/atomic"

// Single runs at most one slow action at a time, for a check that finds something to do. The zero value is ready.
type Single struct{ busy atomic.Bool }

// Go passes act to start, which runs it in a new goroutine, unless the last act has not returned. It reports whether
// act runs. An act that ends its goroutine is the last one.
func (s *Single) Go(start func(func()) bool, act func()) bool {
	if !s.busy.CompareAndSwap(false, true) {
		return false
	}
	started := start(func() {
		act()
		s.busy.Store(false)
	})
	if !started {
		s.busy.Store(false)
	}
	return started
}

// Busy reports whether an act runs. If it does not, everything that the acts have written is visible.
func (s *Single) Busy() bool { return s.busy.Load() }
