package timers

import (
	"context"
	"sync"
	"time"
)

// Lifetime is the time in which a group runs. It starts the group's goroutines and periodic checks, and ends them.
type Lifetime struct {
	Ctx    context.Context // ends with the group
	Cancel context.CancelFunc
	Stop   chan struct{}
	Tasks  sync.WaitGroup // of Go

	started time.Time
	ending  sync.RWMutex // guards ended
	ended   bool         // Go starts nothing any more
	loop    *Loop
	checks  *Checks // nil before the first call of Every
}

// NewLifetime returns the lifetime of a group that begins now. loop calls the checks of the group.
func NewLifetime(loop *Loop) *Lifetime {
	l := &Lifetime{started: time.Now(), loop: loop, Stop: make(chan struct{})}
	l.Ctx, l.Cancel = context.WithCancel(context.Background())
	return l
}

// Uptime returns the monotonic time since the start.
func (l *Lifetime) Uptime() time.Duration { return time.Since(l.started) }

// Closing reports whether the group is closing.
func (l *Lifetime) Closing() bool {
	select {
	case <-l.Stop:
		return true
	default:
		return false
	}
}

// Go runs act in a goroutine that End waits for. After End it does nothing and reports false.
func (l *Lifetime) Go(act func()) bool {
	l.ending.RLock()
	defer l.ending.RUnlock()
	if !l.ended {
		l.Tasks.Go(act)
	}
	return !l.ended
}

// Every calls a check once in each period d, until the group closes. The check must not block: see Loop. Every may be
// called only while the group starts.
func (l *Lifetime) Every(d time.Duration, check func()) {
	if l.checks == nil {
		l.checks = Join(l.loop)
	}
	l.checks.Every(d, func() {
		if !l.Closing() {
			check()
		}
	})
}

// End returns when no check and no task of the group runs. Stop must be closed.
func (l *Lifetime) End() {
	if l.checks != nil {
		l.checks.Leave()
	}
	l.ending.Lock()
	l.ended = true
	l.ending.Unlock()
	l.Tasks.Wait()
}
