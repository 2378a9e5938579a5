package server

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

const (
	// maxWaiters bounds the requests that RL.WAIT holds: each keeps a connection and a
	// goroutine, some 9 KB, and there are as many connections unless told otherwise.
	maxWaiters = 10_000
	// maxWaitersOfKey keeps one key from taking all that room. Who would be behind a
	// thousand others is better told at once.
	maxWaitersOfKey = 1000
)

var (
	errManyWaiters      = fmt.Errorf("%w: RL.WAIT holds %d requests already", limiter.ErrOverloaded, maxWaiters)
	errManyWaitersOfKey = fmt.Errorf("%w: RL.WAIT holds %d requests for this key already", limiter.ErrOverloaded, maxWaitersOfKey)
)

// waitLines are the requests that RL.WAIT holds: one line for each key, first come,
// first served. Only the front of a line tries, so that nobody behind it overtakes.
type waitLines struct {
	count atomic.Int32 // waiters in all; changed under mu

	mu    sync.Mutex
	lines map[string]*list.List // of *waiter; none is empty
}

// waiter is one request in line.
type waiter struct {
	key   string
	place *list.Element
	// turn has a word when the waiter comes to the front, and then when something
	// was given back, so that it may fit sooner than it was told.
	turn chan struct{}
}

func newWaitLines() *waitLines { return &waitLines{lines: make(map[string]*list.List)} }

// join puts a request at the end of its key's line. Whoever joins must leave.
func (l *waitLines) join(key string) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[key]
	switch {
	case l.count.Load() == maxWaiters:
		return nil, errManyWaiters
	case line == nil:
		line = list.New()
		l.lines[key] = line
	case line.Len() == maxWaitersOfKey:
		return nil, errManyWaitersOfKey
	}
	w := &waiter{key: key, turn: make(chan struct{}, 1)}
	if w.place = line.PushBack(w); line.Len() == 1 {
		w.call()
	}
	l.count.Add(1)
	return w, nil
}

// leave takes a request out of its line, wherever it stands.
func (l *waitLines) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.Add(-1)
	line := l.lines[w.key]
	wasFront := line.Front() == w.place
	line.Remove(w.place)
	if line.Len() == 0 {
		delete(l.lines, w.key)
	} else if wasFront {
		callFront(line)
	}
}

func callFront(line *list.List) { line.Front().Value.(*waiter).call() }

func (w *waiter) call() {
	select {
	case w.turn <- struct{}{}:
	default: // it knows already
	}
}

// given calls the fronts of the lines of keys whose limiters have got something back.
func (l *waitLines) given(ops []engine.Op) {
	if l.count.Load() == 0 {
		return
	}
	for i := range ops {
		switch ops[i].Code {
		case engine.OpUnblock: // it may have held for other keys as well
			l.callAll()
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

func (l *waitLines) callKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.lines[key]; line != nil {
		callFront(line)
	}
}

// callAll is for when time has made a leap.
func (l *waitLines) callAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		callFront(line)
	}
}

// lineOf names the line of a decision: its key, or for a check its first policy and key,
// because policies keep a key's limits apart.
func lineOf(op *engine.Op) string {
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
