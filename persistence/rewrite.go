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

// renewFactor is the number of bytes that a pass rewrites for each byte of new changes. A pass therefore ends before
// the new changes reach half the size of the table.
const renewFactor = 2

// renewStep is the number of entries that one call of renew rewrites. The call takes a fraction of a millisecond.
const renewStep = 1024

// rewritePass is a rewrite pass over a journal. It rewrites unchanged entries in shares, one share before each Drain.
// When it has rewritten all entries, the items from before the pass are obsolete and are deleted.
//
// A journal therefore takes at most three times the size of its table, plus spareBytes: one and a half when a pass
// begins, one half of new changes during the pass, and one of rewritten entries.
type rewritePass struct {
	on      bool
	cursor  uint64 // the cursor of Renew; 0: all entries are marked dirty, and the current Drain writes them
	from    uint64 // number of the first item of the pass
	before  int64  // bytes of the items before the pass
	written int64  // bytes of the journal when the last share began
	due     int    // entries of the current share that are still to be rewritten
	kept    int64  // bytes of the journal, without obsolete items, at the end of the last pass

	drops      uint64 // the end of the next flush deletes the items below this number; 0: none
	dropsBytes int64  // bytes of these items
}

// renew begins a rewrite pass when it is due, and advances a running pass by a step. Before each Drain the caller calls
// it until more is false.
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

// share returns the number of entries to rewrite before the next Drain, or 0 if no pass is running or due. It also ends
// and begins passes.
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
	err := b.DeleteRange(itemKey(0), itemKey(r.drops), nil)
	j.first = r.drops
	j.bytes -= r.dropsBytes
	r.written -= r.dropsBytes
	r.drops, r.dropsBytes = 0, 0
	return err
}
