package persistence

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// Drainer is the part of engine.Table that a store needs to save it.
type Drainer interface {
	Drain(maxChunk int, emit func([]engine.Change) error) error
	Renew(cursor uint64, entries int) (next uint64)
	Usage() (entries, bytes int64)
}

// renewal configures when a rewrite pass begins and its minimum speed.
type renewal struct {
	// spareBytes is the length by which a journal may always exceed its table. Rewrite passes over small tables would
	// be frequent and save little.
	spareBytes int64
	// entries is the minimum number of entries rewritten per step, so that a pass also ends on an idle server.
	entries int
}

var usualRenewal = renewal{spareBytes: 64 << 20, entries: 4096}

// renewFactor is the number of bytes that a pass rewrites for each byte that is written anyway. A pass therefore ends
// before these bytes reach half a table.
const renewFactor = 2

// renewStep is the number of entries rewritten in one call. It takes a fraction of a millisecond.
const renewStep = 1024

// rewritePass is a rewrite pass over a journal. It rewrites unchanged entries in shares. When it has rewritten all of them,
// the items before its begin are obsolete and are deleted.
//
// Beside spareBytes, a journal thus takes at most three tables: one and a half when a pass begins, half of one written
// meanwhile, and one rewritten.
type rewritePass struct {
	on      bool
	cursor  uint64 // of Renew; 0: all entries are marked dirty, and the current Drain writes them
	from    uint64 // the item at which the pass began
	before  int64  // bytes of the items before that item
	written int64  // bytes of the journal when the last share began
	due     int    // entries of the current share still to be rewritten
	kept    int64  // bytes that the last pass left

	drops      uint64 // items below this are deleted at the end of the next flush; 0: none
	dropsBytes int64
}

// renew begins a rewrite pass when it is due, and advances a running one by a step. The caller calls it before each
// Drain until more is false.
func (j *journal) renew(from Drainer) (more bool) {
	r := &j.pass
	if r.due <= 0 {
		r.due = j.share(from)
	}
	if r.due <= 0 {
		return false
	}
	r.cursor = from.Renew(r.cursor, min(r.due, renewStep))
	if r.due -= renewStep; r.cursor == 0 {
		r.due = 0
	}
	return r.due > 0
}

// share returns the number of entries to rewrite before the next Drain: none without a rewrite pass.
func (j *journal) share(from Drainer) int {
	entries, bytes := from.Usage()
	r := &j.pass
	grown := j.bytes - r.written
	j.entries, r.written = entries, j.bytes
	if r.on && r.cursor == 0 {
		r.on, r.kept = false, j.bytes-r.before
		r.drops, r.dropsBytes = r.from, r.before
	}
	if !r.on {
		if r.drops > 0 || j.bytes <= j.renewal.spareBytes+max(bytes, r.kept)*3/2 {
			return 0
		}
		r.on, r.from, r.before = true, j.next, j.bytes
	}
	return j.renewal.entries + int(renewFactor*grown*entries/max(bytes, 1))
}

// forget schedules all items written so far for deletion at the end of the next flush.
func (j *journal) forget() {
	j.pass = rewritePass{drops: j.next, dropsBytes: j.bytes}
}

// drop adds the deletion of obsolete items to a batch.
func (j *journal) drop(b *pebble.Batch) error {
	r := &j.pass
	if r.drops == 0 {
		return nil
	}
	if j.legacy {
		if err := dropLegacy(b); err != nil {
			return err
		}
		j.legacy = false
	}
	err := b.DeleteRange(itemKey(0), itemKey(r.drops), nil)
	j.first = r.drops
	j.bytes -= r.dropsBytes
	r.written -= r.dropsBytes
	r.drops, r.dropsBytes = 0, 0
	return err
}
