package service

import (
	"sync"
	"sync/atomic"
	"time"
)

// MaxPauseMs bounds CLIENT PAUSE. An hour is longer than any failover, and a mistyped pause still ends.
const MaxPauseMs = 3_600_000

// Pauser delays commands while CLIENT PAUSE is in force.
type Pauser struct {
	slowPath *atomic.Int32 // Service.SlowPath; a pause adds 1

	mu     sync.Mutex
	active bool
	writes bool // only commands that write are delayed
	until  time.Time
	over   chan struct{} // closed when the pause ends early
}

func newPauser(slowPath *atomic.Int32) *Pauser { return &Pauser{slowPath: slowPath} }

// Begin starts a pause, or replaces the current one.
func (p *Pauser) Begin(d time.Duration, writes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.active, p.writes, p.until, p.over = true, writes, time.Now().Add(d), make(chan struct{})
	p.slowPath.Add(1)
}

// End ends the pause.
func (p *Pauser) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Pauser) clear() {
	if p.active {
		p.active = false
		close(p.over)
		p.slowPath.Add(-1)
	}
}

// Wait blocks while a pause delays cmd, or until stop is closed. The first caller that finds the pause expired ends it
// for all.
func (p *Pauser) Wait(cmd *Command, stop <-chan struct{}) {
	if p.slowPath.Load() == 0 || cmd.Exempt {
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
