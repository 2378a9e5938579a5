package service

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

const (
	// MaxWaiters bounds the requests that RL.WAIT holds: each keeps a connection and a
	// goroutine, some 9 KB, and there are as many connections unless told otherwise.
	MaxWaiters = 10_000
	// MaxWaitersOfKey keeps one key from taking all that room. Who would be behind a
	// thousand others is better told at once.
	MaxWaitersOfKey = 1000
)

var (
	errManyWaiters      = fmt.Errorf("%w: RL.WAIT holds %d requests already", limiter.ErrOverloaded, MaxWaiters)
	errManyWaitersOfKey = fmt.Errorf("%w: RL.WAIT holds %d requests for this key "+
		"already", limiter.ErrOverloaded, MaxWaitersOfKey)
)

// WaitQueues are the requests that RL.WAIT holds: one line for each key, first come,
// first served. Only the front of a line tries, so that nobody behind it overtakes.
type WaitQueues struct {
	Count atomic.Int32 // waiters in all; changed under mu

	mu    sync.Mutex
	Lines map[string]*list.List // of *waiter; none is empty
}

// Waiter is one request in line.
type Waiter struct {
	key   string
	place *list.Element
	// Turn has a word when the waiter comes to the front, and then when something
	// was given back, so that it may fit sooner than it was told.
	Turn chan struct{}
}

func newWaitLines() *WaitQueues { return &WaitQueues{Lines: make(map[string]*list.List)} }

// Join puts a request at the end of its key's line. Whoever joins must leave.
func (l *WaitQueues) Join(key string) (*Waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.Lines[key]
	switch {
	case l.Count.Load() == MaxWaiters:
		return nil, errManyWaiters
	case line == nil:
		line = list.New()
		l.Lines[key] = line
	case line.Len() == MaxWaitersOfKey:
		return nil, errManyWaitersOfKey
	}
	w := &Waiter{key: key, Turn: make(chan struct{}, 1)}
	if w.place = line.PushBack(w); line.Len() == 1 {
		w.call()
	}
	l.Count.Add(1)
	return w, nil
}

// Leave takes a request out of its line, wherever it stands.
func (l *WaitQueues) Leave(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Count.Add(-1)
	line := l.Lines[w.key]
	wasFront := line.Front() == w.place
	line.Remove(w.place)
	if line.Len() == 0 {
		delete(l.Lines, w.key)
	} else if wasFront {
		callFront(line)
	}
}

func callFront(line *list.List) { line.Front().Value.(*Waiter).call() }

func (w *Waiter) call() {
	select {
	case w.Turn <- struct{}{}:
	default: // it knows already
	}
}

// NotifyGiven calls the fronts of the lines of keys whose limiters have got something back.
func (l *WaitQueues) NotifyGiven(ops []engine.Op) {
	if l.Count.Load() == 0 {
		return
	}
	for i := range ops {
		switch ops[i].Code {
		case engine.OpUnblock: // it may have held for other keys as well
			l.NotifyAll()
		case engine.OpRelease, engine.OpRefund, engine.OpReset, engine.OpResetPolicy:
			l.callKey(lineOfLimiter(ops[i].Key))
		case engine.OpForgive:
			l.callKey(lineOfPair(ops[i].Text, ops[i].Key))
			for _, p := range ops[i].Also {
				l.callKey(lineOfPair(p.Policy, p.Key))
			}
		}
	}
}

func (l *WaitQueues) callKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.Lines[key]; line != nil {
		callFront(line)
	}
}

// NotifyAll is for when time has made a leap.
func (l *WaitQueues) NotifyAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.Lines {
		callFront(line)
	}
}

// LineOf names the line of a decision: its key, or for a check its first policy and key,
// because policies keep a key's limits apart.
func LineOf(op *engine.Op) string {
	if op.Code == engine.OpCheck {
		return lineOfPair(op.Text, op.Key)
	}
	return string(op.Key)
}

// lineOfLimiter names the line that waits for a limiter.
func lineOfLimiter(name []byte) string {
	if policy, _, key, ok := engine.SplitName(name); ok {
		return lineOfPair(policy, key)
	}
	return string(name)
}

// lineOfPair is no key of a decision: those do not begin like this.
func lineOfPair(policy, key []byte) string { return "policy|" + string(policy) + "|" + string(key) }
