package service

import (
	"sync"
	"sync/atomic"
	"time"
)

// MaxPauseMs bounds CLIENT PAUSE: an hour is longer than any failover, and what
// is mistyped passes.
const MaxPauseMs = 3_600_000

// Pauser holds commands back while CLIENT PAUSE is in force.
type Pauser struct {
	attention *atomic.Int32 // see service; a pause counts in it

	mu     sync.Mutex
	active bool
	writes bool // only commands that write are held back
	until  time.Time
	over   chan struct{} // closed when the pause ends early
}

func newPauser(attention *atomic.Int32) *Pauser { return &Pauser{attention: attention} }

// Begin starts a pause, or replaces the one there is.
func (p *Pauser) Begin(d time.Duration, writes bool) {
	p.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active, p.writes, p.until, p.over = true, writes, time.Now().Add(d), make(chan struct{})
	p.attention.Add(1)
}

// End lets everyone go on.
func (p *Pauser) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Pauser) clear() {
	if p.active {
		p.active = false
		close(p.over)
		p.attention.Add(-1)
	}
}

// Wait returns when cmd may be carried out, or when stop is closed. The first
// who finds that the time is up ends the pause for everyone.
func (p *Pauser) Wait(cmd *Command, stop <-chan struct{}) {
	if p.attention.Load() == 0 || cmd.Exempt {
		return
	}
	for {
		p.mu.Lock()
		left := time.Until(p.until)
		if p.active && left <= 0 {
			p.clear()
		}
		held, over := p.active && (cmd.Write || !p.writes), p.over
		p.mu.Unlock()
		if !held {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-over:
		case <-timer.C:
		case <-stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}
