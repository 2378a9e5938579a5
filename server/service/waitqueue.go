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
	// MaxWaiters bounds the waiting RL.WAIT requests. Each holds a connection and a goroutine, about 9 KB. The default
	// of the maximum number of clients is the same.
	MaxWaiters = 10_000
	// MaxWaitersOfKey bounds the waiters of one key, so that one key cannot use all of MaxWaiters. A request behind a
	// thousand others is better refused at once.
	MaxWaitersOfKey = 1000
)

var (
	errManyWaiters      = fmt.Errorf("%w: RL.WAIT holds %d requests already", limiter.ErrOverloaded, MaxWaiters)
	errManyWaitersOfKey = fmt.Errorf("%w: RL.WAIT holds %d requests for this key "+
		"already", limiter.ErrOverloaded, MaxWaitersOfKey)
)

// WaitQueues holds the waiting RL.WAIT requests in one FIFO queue per key. Only the front of a queue retries, so no
// request overtakes it.
type WaitQueues struct {
	Count atomic.Int32 // waiters of all keys; changed under mu

	mu     sync.Mutex
	Queues map[string]*list.List // of *Waiter; no list is empty
}

// Waiter is one request in a queue of WaitQueues.
type Waiter struct {
	key   string
	place *list.Element
	// Wake receives a value when the waiter reaches the front. It receives another when units were returned, because
	// the request may then fit earlier than computed.
	Wake chan struct{}
}

func newWaitQueues() *WaitQueues { return &WaitQueues{Queues: make(map[string]*list.List)} }

// Join appends a request to the queue of its key. The caller must call Leave.
func (l *WaitQueues) Join(key string) (*Waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.Queues[key]
	switch {
	case l.Count.Load() == MaxWaiters:
		return nil, errManyWaiters
	case queue == nil:
		queue = list.New()
		l.Queues[key] = queue
	case queue.Len() == MaxWaitersOfKey:
		return nil, errManyWaitersOfKey
	}
	w := &Waiter{key: key, Wake: make(chan struct{}, 1)}
	if w.place = queue.PushBack(w); queue.Len() == 1 {
		w.notify()
	}
	l.Count.Add(1)
	return w, nil
}

// Leave removes a request from its queue, at any position.
func (l *WaitQueues) Leave(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Count.Add(-1)
	queue := l.Queues[w.key]
	wasFront := queue.Front() == w.place
	queue.Remove(w.place)
	if queue.Len() == 0 {
		delete(l.Queues, w.key)
	} else if wasFront {
		notifyFront(queue)
	}
}

func notifyFront(queue *list.List) { queue.Front().Value.(*Waiter).notify() }

func (w *Waiter) notify() {
	select {
	case w.Wake <- struct{}{}:
	default: // a notification is already pending
	}
}

// NotifyGiven notifies the front of the queue of each key in ops that received units back. It does not know the keys
// of holds.
func (l *WaitQueues) NotifyGiven(ops []engine.Op) {
	for i := range ops {
		switch ops[i].Code {
		case engine.OpUnblock: // the block may have covered other keys as well
			l.NotifyAll()
		case engine.OpRelease, engine.OpRefund, engine.OpReset, engine.OpResetPolicy:
			l.notifyKey(queueIn(ops[i].Database, queueOfLimiter(ops[i].Key)))
		case engine.OpForgive:
			l.notifyKey(queueIn(ops[i].Database, queueOfPair(ops[i].Text, ops[i].Key)))
			for _, p := range ops[i].Also {
				l.notifyKey(queueIn(ops[i].Database, queueOfPair(p.Policy, p.Key)))
			}
		}
	}
}

func (l *WaitQueues) notifyKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if queue := l.Queues[key]; queue != nil {
		notifyFront(queue)
	}
}

// NotifyAll notifies the front of every queue: after a jump of limiter time, or the end of a block.
func (l *WaitQueues) NotifyAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, queue := range l.Queues {
		notifyFront(queue)
	}
}

// QueueOf returns the queue name of a decision. It is the key, or for a check its first policy and key, because each
// policy has its own limiters. Each database has queues of its own.
func QueueOf(op *engine.Op) string {
	if op.Code == engine.OpCheck {
		return queueIn(op.Database, queueOfPair(op.Text, op.Key))
	}
	return queueIn(op.Database, string(op.Key))
}

func queueIn(database uint8, name string) string {
	if database == 0 {
		return name
	}
	return string(engine.AppendStored(nil, int(database), []byte(name)))
}

// queueOfLimiter returns the queue name for a limiter.
func queueOfLimiter(name []byte) string {
	if policy, _, key, ok := engine.SplitName(name); ok {
		return queueOfPair(policy, key)
	}
	return string(name)
}

// queueOfPair returns a name that no decision's key equals, because keys cannot begin with this prefix.
func queueOfPair(policy, key []byte) string { return "policy|" + string(policy) + "|" + string(key) }
