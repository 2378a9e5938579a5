package sharedlog

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// maxRewriteBytes bounds the records that one append writes again. The append delays the requests that wait by about
// the time that the disk takes for so many bytes.
const maxRewriteBytes = 256 << 10

// compactor keeps the log short, in a goroutine of its own.
type compactor struct {
	wake    chan struct{}
	stop    chan struct{}
	running sync.WaitGroup

	asked, done atomic.Int64 // calls of look, and those of them that were answered
}

// look makes the compactor look at the log.
func (k *compactor) look() {
	k.asked.Add(1)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// runCompactor compacts the log when it is woken, until Close or until the Base fails. The next write of a part then
// reports the failure.
func (l *Log) runCompactor() {
	for {
		select {
		case <-l.compactor.stop:
			return
		case <-l.compactor.wake:
			asked := l.compactor.asked.Load()
			if err := l.compact(); err != nil {
				l.queue.fail(err)
				return
			}
			l.compactor.done.Store(asked)
		}
	}
}

// compact removes the records before the oldest live one, after it has moved live records that are in the way.
func (l *Log) compact() error {
	target, ask := l.choose()
	if ask != nil {
		ask()
	}
	for target > 0 {
		select {
		case <-l.compactor.stop:
			return nil
		default:
		}
		oldest := l.oldest()
		if oldest >= target {
			return l.truncate(oldest)
		}
		if err := l.commit(&request{}); err != nil { // writes some of the records again
			return err
		}
	}
	return nil
}

// choose returns the position before which all records should go, or 0. ask asks a part for a snapshot; nil: no
// snapshot is needed.
func (l *Log) choose() (target uint64, ask func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest, pin := uint64(none), (*Part)(nil)
	for _, p := range l.parts {
		if at := p.entries.oldest(); at < oldest {
			oldest, pin = at, p
		}
	}
	oldest = min(oldest, l.last)
	all, live := l.spans.bytes(), l.live()
	allowed := max(l.limits.DeadBytes, live)
	switch dead := all - live; {
	case l.spans.before(oldest) >= l.limits.FreeBytes:
		target = oldest
	case dead > allowed:
		target = min(l.spans.after(all/4), l.last)
	case dead > allowed/2 && pin != nil && pin.pinned != nil && oldest >= pin.asked:
		ask = l.askFor(pin, max(all/4, l.limits.FreeBytes+l.spans.each))
	}
	l.target = target
	return target, ask
}

// askFor returns a function that asks a part for a snapshot, so that its entries in so many bytes at the beginning of
// the log can go. The caller holds mu.
//
// The part keeps its later entries for followers that lag. It is not asked again before the earlier ones are gone.
func (l *Log) askFor(p *Part, bytes int64) func() {
	if p.asked = l.spans.after(bytes); p.asked == 0 {
		p.asked = l.last
	}
	pinned, low := p.pinned, p.entries.indexFrom(p.asked)
	return func() { pinned(low) }
}

// oldest returns the position of the oldest live record, or of the last record.
func (l *Log) oldest() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	oldest := l.last
	for _, p := range l.parts {
		oldest = min(oldest, p.entries.oldest())
		for _, v := range p.stable {
			oldest = min(oldest, v.at)
		}
	}
	return oldest
}

// truncate removes the records before a position. All of them are dead.
func (l *Log) truncate(at uint64) error {
	l.mu.Lock()
	l.target = 0
	l.spans.drop(at)
	l.mu.Unlock()
	first, err := l.base.FirstIndex()
	if err != nil || first >= at {
		return err
	}
	return l.base.DeleteRange(first, at-1)
}

// rewrite returns some of the live records before the target, to be written again, or nil. Only the caller that writes
// calls it.
func (l *Log) rewrite() (*request, error) {
	r := &request{}
	for _, at := range l.liveBeforeTarget() {
		var rec raft.Log
		if err := l.base.GetLog(at, &rec); err != nil {
			return nil, err
		}
		h, err := decodeHeader(rec.Extensions)
		if err != nil {
			return nil, corrupt(at, err.Error())
		}
		if r.add(h, rec); r.bytes >= maxRewriteBytes {
			break
		}
	}
	if len(r.records) == 0 {
		return nil, nil
	}
	return r, nil
}

// liveBeforeTarget returns positions of live records before the target, at most as many as one append writes again.
func (l *Log) liveBeforeTarget() (at []uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.target == 0 {
		return nil
	}
	const most = maxRewriteBytes / recordOverhead
	for _, p := range l.parts {
		for _, v := range p.stable {
			if v.at < l.target {
				at = append(at, v.at)
			}
		}
		for _, position := range p.entries.at {
			if position < l.target && len(at) < most {
				at = append(at, position)
			}
		}
	}
	return at
}
