package sharedlog

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/hashicorp/raft"
)

// maxBatchBytes bounds the records of one append. A request that is larger alone is written alone.
const maxBatchBytes = 4 << 20

// request is a group of records that one caller writes. They are in the log together or not at all.
type request struct {
	records []*raft.Log
	heads   []record // of records
	memory  []raft.Log
	bytes   int64

	turn chan bool // true: the request was written; false: its caller writes next
	err  error
}

func newRequest(records int) *request {
	return &request{
		records: make([]*raft.Log, 0, records), heads: make([]record, 0, records),
		memory: make([]raft.Log, 0, records),
	}
}

// add adds a record. fields holds what is not in the header.
func (r *request) add(h record, fields raft.Log) {
	fields.Extensions = h.appendHeader(make([]byte, 0, 16+len(h.rest)+len(h.key)))
	r.memory = append(r.memory, fields)
	r.records, r.heads = append(r.records, &r.memory[len(r.memory)-1]), append(r.heads, h)
	r.bytes += bytesOf(&fields)
}

// queue holds the requests that wait. Each part writes one request at a time, so there are at most as many requests as
// parts, and one of DropClosed and of the compactor each.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	writing bool  // a caller writes
	failed  error // of the first failed append
}

// commit writes a request, together with those of other callers. The first caller that waits writes for all. Before it
// writes, all goroutines run that can, because several groups often write at the same moment. Otherwise the first group
// would write alone, and the others would share a second append.
func (l *Log) commit(r *request) error {
	r.turn = make(chan bool, 1)
	if first := l.queue.put(r); !first && <-r.turn {
		return r.err
	}
	runtime.Gosched()
	batch, err := l.queue.take()
	if err == nil {
		err = l.write(batch)
	}
	l.queue.done(batch, err)
	return err
}

// put queues a request. It reports whether its caller writes.
func (q *queue) put(r *request) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first, q.writing = !q.writing, true
	q.waiting = append(q.waiting, r)
	return first
}

// take returns the requests of the next append, and the error of an earlier append.
func (q *queue) take() ([]*request, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 1, q.waiting[0].bytes
	for n < len(q.waiting) && bytes+q.waiting[n].bytes <= maxBatchBytes {
		bytes += q.waiting[n].bytes
		n++
	}
	batch := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return batch, q.failed
}

// done answers the requests of an append, except the first, whose caller has written. The caller of the next request
// writes next.
func (q *queue) done(batch []*request, err error) {
	for _, r := range batch[1:] {
		r.err = err
		r.turn <- true
	}
	if err != nil {
		q.fail(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		q.waiting[0].turn <- false
		return
	}
	q.waiting, q.writing = nil, false
}

// fail makes all later writes return an error.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed == nil {
		q.failed = err
	}
}

// write appends the records of requests, and updates the index.
//
// Records that are written again come first. They hold what the index says, and the records of the requests may change
// that.
func (l *Log) write(batch []*request) error {
	rewritten, err := l.rewrite()
	if err != nil {
		return err
	}
	if rewritten != nil {
		batch = append([]*request{rewritten}, batch...)
	}
	var all []*raft.Log
	for _, r := range batch {
		all = append(all, r.records...)
	}
	if len(all) == 0 {
		return nil
	}
	for i, rec := range all {
		rec.Index = l.last + 1 + uint64(i)
	}
	if err := l.base.StoreLogs(all); err != nil {
		return fmt.Errorf("shared log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range batch {
		for i, h := range r.heads {
			l.apply(h, r.records[i])
		}
	}
	l.last += uint64(len(all))
	l.writes++
	return nil
}

// apply updates the index after a record was written. The caller holds mu.
func (l *Log) apply(h record, rec *raft.Log) {
	p := l.part(h.part)
	bytes := bytesOf(rec)
	switch h.kind {
	case kindEntry:
		p.entries.put(h.index, rec.Index, bytes)
	case kindStable:
		p.stable[string(h.key)] = value{rec.Data, rec.Index}
	case kindCut:
		p.entries.cut(h.index)
	case kindLow:
		p.entries.raise(h.index)
	case kindDrop:
		delete(l.parts, h.part)
	}
	if l.spans.add(rec.Index, bytes) {
		l.compactor.look()
	}
}
