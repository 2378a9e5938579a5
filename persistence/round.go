package persistence

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// Drainer is what a store needs of engine.Table to save it.
type Drainer interface {
	Drain(maxChunk int, emit func([]engine.Change) error) error
	Renew(cursor uint64, entries int) (next uint64)
	Usage() (entries, bytes int64)
}

// renewal is when rounds begin, and how fast they go at least.
type renewal struct {
	// spareBytes is how much longer than its table a journal may be in any case: rounds
	// over small tables would be many, and save little.
	spareBytes int64
	// entries is how many are renewed at a time at least, so that a round ends on a quiet
	// server as well.
	entries int
}

var usualRenewal = renewal{spareBytes: 64 << 20, entries: 4096}

// renewFactor is how many bytes a round renews for each byte that is written anyway: it
// ends before these have become half a table.
const renewFactor = 2

// renewStep is how many entries are renewed in one go: a fraction of a millisecond's work,
// like what is written at once.
const renewStep = 1024

// round is the renewal of a journal. A share at a time, entries that have not changed are
// written again; when all have been, what was written before the round began is of no
// more use and goes.
//
// So a journal takes at most, beside spareBytes: one and a half tables when a round
// begins, half of one that is written meanwhile, and one that is renewed.
type round struct {
	on      bool
	cursor  uint64 // of Renew; 0: all is marked, and written once the present Drain has ended
	from    uint64 // the item at which the round began
	before  int64  // bytes of the items before that
	written int64  // bytes of the journal when the last share began
	due     int    // entries of the present share that are still to be renewed
	kept    int64  // bytes that the last round left

	drops      uint64 // items below this go at the end of the next flush; 0: none
	dropsBytes int64
}

// renew is called before each Drain until there is no more to do for now. It begins a
// round when one is due, and takes one that is under way a step further.
func (j *journal) renew(from Drainer) (more bool) {
	r := &j.round
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

// share is how many entries are to be renewed before the next Drain: none when there is no
// round.
func (j *journal) share(from Drainer) int {
	entries, bytes := from.Usage()
	r := &j.round
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

// forget makes everything written so far go at the end of the next flush.
func (j *journal) forget() {
	j.round = round{drops: j.next, dropsBytes: j.bytes}
}

// drop adds to a batch that what is of no more use is gone.
func (j *journal) drop(b *pebble.Batch) error {
	r := &j.round
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
