package queue

import (
	"sync"
	"time"
)

const (
	// backNum and backDen are the share of the operations answered in a round for which the next round waits. Clients
	// that send their next request after the answer to the last one then share the entries of one round.
	backNum, backDen = 3, 4
	// coalesceFor is longer than a commit on a good disk in one data centre. One entry in this time costs a node a few
	// hundredths of a processor.
	coalesceFor = 5 * time.Millisecond
	// gatherShare divides the duration of a round: the next round waits for callers for at most half as long, and never
	// longer than coalesceFor. Without the wait such clients would divide into two halves that write twice as many
	// entries.
	gatherShare = 2
	// holdFor is the time for which a batch waits at most for the end of a round. It is twice coalesceFor, because the
	// rounds of several groups take longer on a loaded host, where smaller entries cost the most.
	holdFor = 2 * coalesceFor
)

// HostWindow makes the queues of a host propose at the same moment. An entry costs every node a disk write, a message
// or two, and half a dozen goroutine wake-ups: as much as hundreds of operations. So each entry must hold much of what
// has arrived, and entries of the same moment share messages and wake-ups.
//
// A round is the time in which batches of any group are in flight. Batches that arrive meanwhile wait for its end, for
// holdFor at most, unless they fill an entry. The next round then waits a moment for the callers that were
// answered. A caller that is alone waits for nobody.
type HostWindow struct {
	mu       sync.Mutex
	number   uint64 // of the round
	inFlight int    // batches of the round that are not complete
	began    time.Time
	answered int // operations of clients of this node that were answered since the round began

	waiting    []*Queue // whose batches wait
	waitingOps int      // operations that have arrived while batches wait
	gathering  bool     // the round is over, and the next one waits for callers
	expected   int      // waitingOps at which it begins
	late       *time.Timer
}

// NewHostWindow returns a window for the queues of one host.
func NewHostWindow() *HostWindow {
	w := &HostWindow{}
	w.mu.Lock() // open waits for it, because the timer may expire at once on a busy host
	defer w.mu.Unlock()
	w.late = time.AfterFunc(holdFor, w.open)
	w.late.Stop()
	return w
}

// arrive records that operations have arrived in a queue. If now is false, the window releases the queue later. The
// caller holds Mu of the queue, and releases the queues in others after it has unlocked Mu.
func (w *HostWindow) arrive(q *Queue, ops int) (now bool, others []*Queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight == 0 && !w.gathering {
		return true, nil
	}
	if !q.listed {
		q.listed = true
		w.waiting = append(w.waiting, q)
		if len(w.waiting) == 1 && !w.gathering {
			w.late.Reset(holdFor)
		}
	}
	if w.waitingOps += ops; w.gathering && w.waitingOps >= w.expected {
		return false, w.end()
	}
	return false, nil
}

// end ends a round and returns the queues to release. Batches in flight no longer count: a group that does not answer
// delays the others once. The caller holds mu.
func (w *HostWindow) end() []*Queue {
	w.late.Stop()
	queues := w.waiting
	for _, q := range queues {
		q.listed = false
	}
	w.number++
	w.inFlight, w.answered = 0, 0
	w.waiting, w.waitingOps, w.gathering = nil, 0, false
	return queues
}

// open begins the next round now.
func (w *HostWindow) open() {
	w.mu.Lock()
	queues := w.end()
	w.mu.Unlock()
	release(queues)
}

// release lets the batches of queues go.
func release(queues []*Queue) {
	for _, q := range queues {
		q.Mu.Lock()
		if len(q.Batches) > 0 {
			q.released = true
			q.changed.Broadcast()
		}
		q.Mu.Unlock()
	}
}

// sent counts a batch in flight, and returns the number of its round.
func (w *HostWindow) sent() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight == 0 {
		w.began = time.Now()
	}
	w.inFlight++
	return w.number
}

// completed records that a batch of a round has completed, and how many operations of this node's clients it answered.
func (w *HostWindow) completed(round uint64, answered int) {
	w.mu.Lock()
	var queues []*Queue
	if w.answered += answered; round == w.number {
		if w.inFlight--; w.inFlight == 0 && !w.gathering {
			queues = w.gather()
		}
	}
	w.mu.Unlock()
	release(queues)
}

// gather waits for the callers that were answered in the round, or ends the round. The caller holds mu.
func (w *HostWindow) gather() []*Queue {
	back := w.answered * backNum / backDen
	if back == 0 {
		return w.end()
	}
	w.gathering, w.expected = true, w.waitingOps+back
	w.late.Reset(min(time.Since(w.began)/gatherShare, coalesceFor))
	return nil
}
