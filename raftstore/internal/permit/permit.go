package permit

import (
	"slices"
	"sync"
	"time"
)

const (
	// Patience bounds the wait of a group whose log is long enough. A group then takes its snapshot beside the one
	// under way, so that a snapshot that hangs does not let all logs grow without bound.
	Patience = time.Minute
	// OperatorPatience bounds the wait of a snapshot that an operator asked for.
	OperatorPatience = 10 * time.Second
)

// Permit admits one snapshot at a time. It is granted to the operator's requests first, in their order, and then to the
// group with the longest log. The zero value is free, and all groups of a process share one.
type Permit struct {
	mu      sync.Mutex
	holders int // more than one if a waiter has lost patience
	waiting []*waiter
}

// waiter is a snapshot that waits for the permit.
type waiter struct {
	operator bool
	logBytes func() int64
	granted  chan struct{} // closed when the snapshot may begin
}

// Acquire waits until a group may take a snapshot because its log is long enough, at most for Patience. logBytes
// returns the length of that log. Acquire reports false if stop is closed first. Otherwise the caller calls Release
// after the snapshot.
func (p *Permit) Acquire(logBytes func() int64, stop <-chan struct{}) bool {
	return p.acquire(&waiter{logBytes: logBytes}, Patience, stop)
}

// AcquireForOperator is Acquire for a snapshot that an operator asked for. It goes before all groups whose logs are
// long, and waits at most for OperatorPatience.
func (p *Permit) AcquireForOperator(stop <-chan struct{}) bool {
	return p.acquire(&waiter{operator: true}, OperatorPatience, stop)
}

func (p *Permit) acquire(w *waiter, patience time.Duration, stop <-chan struct{}) bool {
	w.granted = make(chan struct{})
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.grant()
	p.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.granted:
		return true
	case <-timer.C:
		p.leave(w)
		return true
	case <-stop:
		p.leave(w)
		p.Release()
		return false
	}
}

// leave makes a waiter a holder, whoever holds the permit.
func (p *Permit) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 { // else it was granted at this moment
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.holders++
	}
}

// Release ends the snapshot of a caller of Acquire or AcquireForOperator.
func (p *Permit) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders--
	p.grant()
}

// Waiting returns the number of snapshots that wait.
func (p *Permit) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// grant gives a free permit to the next waiter. The caller holds mu.
func (p *Permit) grant() {
	if p.holders > 0 || len(p.waiting) == 0 {
		return
	}
	next := p.next()
	close(p.waiting[next].granted)
	p.waiting = slices.Delete(p.waiting, next, next+1)
	p.holders++
}

// next returns the position of the waiter that is served first.
func (p *Permit) next() (next int) {
	longest := int64(-1)
	for i, w := range p.waiting {
		if w.operator {
			return i
		}
		if bytes := w.logBytes(); bytes > longest {
			next, longest = i, bytes
		}
	}
	return next
}
