package persistence

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// journal keeps entries in a Pebble store as an ordered sequence of their changes. A key of the store is journalPrefix
// and a number, from 1 and without gaps. Its value is an item: a block of changes, or a record that completes the
// changes before it.
//
// The tables of such a store are in order and never overlap. So Pebble merges almost nothing, and a change is written
// about once. In a store that is ordered by client key, a change would be written several times: by each merge that
// contains it. In return, overwritten changes and deleted entries stay until a rewrite pass has copied all other
// entries: see rewritePass.
type journal struct {
	db    *pebble.DB
	first uint64 // number of the first item; 0: unknown (see head)
	next  uint64 // number of the next item
	// unfinished says that the store has items from next on, of a flush that a crash has interrupted.
	unfinished bool
	bytes      int64 // size of all items
	entries    int64 // number of entries in the table at the last renew
	lanes      [laneCount]block
	renewal    renewal
	pass       rewritePass
}

// laneCount is the number of lanes. The checksum of a change's engine.OrderKey chooses its lane, and a block holds
// changes of one lane. Load processes lanes in parallel, and the blocks of each lane in order.
const (
	laneCount = 16
	// laneBytes is the largest buffer that a lane keeps between batches.
	laneBytes = 64 << 10
)

// The first byte of an item is its kind. For a block it is the lane, plus shortBlock in format 5, in which the whole
// key chose the lane, or plus orderedBlock since format 6. A clock record ends every batch of a store. An image record
// ends an image.
const (
	shortBlock   = 0x10
	orderedBlock = 0x20
	clockRecord  = 0xff
	imageRecord  = 0xfe
)

const journalPrefix = 'j'

// itemKeyLen is the length of an item's key.
const itemKeyLen = 1 + 8

func itemKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{journalPrefix}, number)
}

func laneOf(key []byte) byte {
	return byte(crc32.Checksum(engine.OrderKey(key), castagnoli) % laneCount)
}

// write writes changes as one atomic batch.
func (j *journal) write(changes []engine.Change, sync *pebble.WriteOptions) error {
	return j.commit(changes, sync, func(*pebble.Batch) error { return nil })
}

// writeRecord writes changes, followed by a record, as one atomic batch. The last batch of a flush has no changes, and
// it also deletes obsolete items.
func (j *journal) writeRecord(changes []engine.Change, kind byte, record []byte, sync *pebble.WriteOptions) error {
	return j.commit(changes, sync, func(b *pebble.Batch) error {
		if len(changes) == 0 {
			if err := j.drop(b); err != nil {
				return err
			}
		}
		return j.add(b, kind, j.head(kind), record)
	})
}

// head returns the bytes before a record: the number of entries and, for a clock record, the begin of the journal. The
// begin is twice the number of the first item. Without the begin, a journal that lost its first files would look as if
// a rewrite pass had deleted these items.
func (j *journal) head(kind byte) []byte {
	head := binary.AppendUvarint(nil, uint64(j.entries))
	if kind != clockRecord {
		return head
	}
	return binary.AppendUvarint(head, j.first<<1)
}

// commit writes changes as one atomic batch. Before it commits the batch, it calls last, which may add to it.
func (j *journal) commit(changes []engine.Change, sync *pebble.WriteOptions, last func(*pebble.Batch) error) error {
	defer j.clear() // also after an error: the lanes refer to memory of the caller
	for _, c := range changes {
		j.lanes[laneOf(c.Key)].add(c)
	}
	b := j.db.NewBatch()
	defer b.Close()
	if j.unfinished {
		if err := b.DeleteRange(itemKey(j.next), []byte{journalPrefix + 1}, nil); err != nil {
			return err
		}
		j.unfinished = false
	}
	if err := j.flush(b); err != nil {
		return err
	}
	if err := last(b); err != nil {
		return err
	}
	return b.Commit(sync)
}

// flush adds the blocks of the lanes to a batch.
func (j *journal) flush(b *pebble.Batch) error {
	for lane := range j.lanes {
		if bytes := j.lanes[lane].bytes; len(bytes) > 0 {
			if err := j.add(b, orderedBlock|byte(lane), bytes, nil); err != nil {
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

// release frees the memory of the lanes, and forgets the closed store.
func (j *journal) release() {
	j.db = nil
	j.lanes = [laneCount]block{}
}

// add adds an item to a batch: its kind, followed by head and body.
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
