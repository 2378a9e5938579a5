package persistence

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Progress tells how far a process has loaded its stored state. Raft groups, which are loaded one after another, share
// one. Its methods may be called from any goroutine. A nil *Progress keeps nothing.
type Progress struct {
	began          atomic.Int64 // Unix nanoseconds of the begin of the journal that is being loaded; 0: none
	expected, read atomic.Int64 // items of this journal
	bytes, changes atomic.Int64 // of all journals
}

// begin tells that a journal of so many items is loaded from now on.
func (p *Progress) begin(items int64) {
	if p != nil {
		p.read.Store(0)
		p.expected.Store(items)
		p.began.Store(time.Now().UnixNano())
	}
}

// add tells that one more item was read.
func (p *Progress) add(bytes int64) {
	if p != nil {
		p.read.Add(1)
		p.bytes.Add(bytes)
	}
}

// loaded tells that more changes were loaded.
func (p *Progress) loaded(changes int) {
	if p != nil {
		p.changes.Add(int64(changes))
	}
}

// String describes the progress for people: the changes and bytes that are loaded, the part that is read of the journal
// that is being loaded, and how long its rest will take. A start goes on after it, for example with a log.
func (p *Progress) String() string {
	began, read, of := p.began.Load(), p.read.Load(), p.expected.Load()
	if began == 0 || read == 0 {
		return "looking for stored state"
	}
	if read >= of {
		return fmt.Sprintf("the state is loaded, the start goes on: %d changes, %d bytes", p.changes.Load(),
			p.bytes.Load())
	}
	past := time.Since(time.Unix(0, began))
	left := time.Duration(float64(past) * float64(of-read) / float64(read))
	return fmt.Sprintf("loading the state: %d changes, %d bytes, %d %%, about %v left", p.changes.Load(),
		p.bytes.Load(), 100*read/of, left.Round(time.Second))
}
