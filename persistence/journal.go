package persistence

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// journal keeps entries in a Pebble store as their changes, in the order in which they
// came. A key of the store is journalPrefix and a number, from 1 and without gaps; its
// value is an item: a block of changes, or a record of what the changes before it add up to.
//
// Tables of such a store follow each other and never overlap, so Pebble has next to
// nothing to merge: a change costs what its bytes cost. An order by client key would cost
// several times that, in the memtable and again in each merge. The price is that
// what was changed again, or is gone, stays until a round has renewed everything: see round.
type journal struct {
	db      *pebble.DB
	first   uint64 // the number of the first item; 0: not known (see head)
	next    uint64 // the number of the next item
	bytes   int64  // of all items there are
	entries int64  // in the table, when renew last asked
	legacy  bool   // there are entries as format 1 kept them
	lanes   [laneCount]block
	renewal renewal
	round   round
}

// Entries are spread over lanes by a checksum of their key, and a block holds changes of
// one lane: a load works on lanes side by side and on the blocks of each in order.
const (
	laneCount = 16
	// laneBytes is the room that a lane keeps between batches.
	laneBytes = 64 << 10
)

// The first byte of an item is the lane of a block, with shortBlock since format 4, or says
// whose record it is: of the clock, which ends every batch of a store, or of an image.
const (
	shortBlock  = 0x10
	clockRecord = 0xff
	imageRecord = 0xfe
)

const journalPrefix = 'j'

// itemKeyLen is the length of an item's key.
const itemKeyLen = 1 + 8

func itemKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{journalPrefix}, number)
}

func laneOf(key []byte) byte { return byte(crc32.Checksum(key, castagnoli) % laneCount) }

// write writes changes as one atomic batch.
func (j *journal) write(changes []engine.Change, sync *pebble.WriteOptions) error {
	return j.commit(changes, sync, func(*pebble.Batch) error { return nil })
}

// end writes changes, and behind them a record, as one atomic batch. One without changes
// comes last: with it goes what is of no more use.
func (j *journal) end(changes []engine.Change, kind byte, record []byte, sync *pebble.WriteOptions) error {
	return j.commit(changes, sync, func(b *pebble.Batch) error {
		if len(changes) == 0 {
			if err := j.drop(b); err != nil {
				return err
			}
		}
		return j.add(b, kind, j.head(kind), record)
	})
}

// head returns the bytes before a record: the number of entries, and, since format 5 and
// only before a clock record, where the journal begins. That is twice the number of its
// first item, plus 1 while there are entries of format 1. Without it, a journal that lost
// its first files would look like one that was rewritten.
func (j *journal) head(kind byte) []byte {
	head := binary.AppendUvarint(nil, uint64(j.entries))
	if kind != clockRecord {
		return head
	}
	begin := j.first << 1
	if j.legacy {
		begin |= 1
	}
	return binary.AppendUvarint(head, begin)
}

func (j *journal) commit(changes []engine.Change, sync *pebble.WriteOptions, end func(*pebble.Batch) error) error {
	defer j.clear() // also after an error: the changes will not come again, and are not ours any more
	for _, c := range changes {
		j.lanes[laneOf(c.Key)].add(c)
	}
	b := j.db.NewBatch()
	defer b.Close()
	if err := j.flush(b); err != nil {
		return err
	}
	if err := end(b); err != nil {
		return err
	}
	return b.Commit(sync)
}

// flush adds what the lanes hold to a batch.
func (j *journal) flush(b *pebble.Batch) error {
	for lane := range j.lanes {
		if bytes := j.lanes[lane].bytes; len(bytes) > 0 {
			if err := j.add(b, shortBlock|byte(lane), bytes, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear empties the lanes.
func (j *journal) clear() {
	for lane := range j.lanes {
		j.lanes[lane].clear()
	}
}

// add adds an item to a batch: its kind and two pieces.
func (j *journal) add(b *pebble.Batch, kind byte, head, body []byte) error {
	op := b.SetDeferred(itemKeyLen, 1+len(head)+len(body))
	op.Key[0] = journalPrefix
	binary.BigEndian.PutUint64(op.Key[1:], j.next)
	op.Value[0] = kind
	copy(op.Value[1+copy(op.Value[1:], head):], body)
	j.next++
	j.bytes += int64(len(op.Key) + len(op.Value))
	return op.Finish()
}
