package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// Loader is the part of engine.Table that a start needs. Changes are valid only during the call. See engine.Table for
// the contract of each method.
type Loader interface {
	Reserve(entries int64)
	Load(at engine.Stamp, changes []engine.Change) (bad int, err error)
}

// openJournal finds the end of the journal in a store and returns the last record of a kind. In a store without a
// journal, record is nil.
func openJournal(db *pebble.DB, kind byte, r renewal) (j journal, record []byte, err error) {
	j = journal{db: db, first: 1, next: 1, renewal: r}
	iter, err := db.NewIter(nil)
	if err != nil {
		return j, nil, err
	}
	switch {
	case iter.First() && iter.Key()[0] != journalPrefix:
		err = fmt.Errorf("%w (it has entries outside its journal)", ErrOlder)
	case iter.Last():
		record, err = j.readLast(iter, kind)
	}
	return j, record, errors.Join(err, iter.Close())
}

// readLast finds the last image record, which ends an image, or the clock record that ends the last finished flush.
// What follows a finished flush is the beginning of one that a crash has interrupted: its limiters, holds and events
// are from different moments, so it is not read, and the next write deletes it.
func (j *journal) readLast(iter *pebble.Iterator, kind byte) (record []byte, err error) {
	last, err := itemNumber(iter.Key())
	if err != nil {
		return nil, err
	}
	j.next = 0
	for ; iter.Valid(); iter.Prev() {
		number, err := itemNumber(iter.Key())
		if err != nil {
			return nil, err
		}
		value, err := iter.ValueAndErr()
		if err != nil {
			return nil, err
		}
		switch {
		case len(value) == 0 || value[0] != clockRecord && value[0] != imageRecord:
			if kind == imageRecord || number == last { // a batch ends with a record
				return nil, fmt.Errorf("%w (item %d does not end it)", ErrDamaged, last)
			}
			record, j.next = nil, 0
			continue
		case record != nil: // the last batch of a flush has no block, so a record precedes its record
			return record, nil
		case j.next == 0:
			j.next, j.unfinished = number+1, number < last
		}
		if value[0] != kind {
			continue
		}
		if record, err = j.cutHead(kind, append([]byte{}, value[1:]...)); err != nil {
			return nil, err
		}
		if kind == imageRecord || j.first == number {
			return record, nil
		}
	}
	return nil, fmt.Errorf("%w (no finished flush precedes item %d)", ErrDamaged, last)
}

// cutHead stores what a record says about the journal (see head) in j, and returns the rest of the record.
func (j *journal) cutHead(kind byte, record []byte) ([]byte, error) {
	entries, size := binary.Uvarint(record)
	record = record[max(size, 0):]
	j.entries, j.first = int64(entries), 0
	if kind != clockRecord {
		return record, nil
	}
	begin, size := binary.Uvarint(record)
	if size <= 0 || begin&1 == 1 {
		return nil, fmt.Errorf("%w (its clock record does not say where it begins)", ErrDamaged)
	}
	j.first = begin >> 1
	return record[size:], nil
}

func itemNumber(key []byte) (uint64, error) {
	if len(key) != itemKeyLen {
		return 0, fmt.Errorf("%w (it has a key of %d bytes)", ErrDamaged, len(key))
	}
	return binary.BigEndian.Uint64(key[1:]), nil
}

// load loads the stored entries into to, except entries that are idle at the given stamp. A reader distributes the
// blocks by lane to workers. After any error the caller must discard to.
func (j *journal) load(at engine.Stamp, to Loader, p *Progress) error {
	to.Reserve(j.expected())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := newLoadWorkers(ctx)
	ended := make(chan error, len(w.queues)+1)
	for _, work := range w.queues {
		go func() { ended <- loadParcels(ctx, work, &gathered{at: at, to: to, progress: p}) }()
	}
	go func() {
		defer w.end()
		ended <- j.read(w.hand, p)
	}()
	var err error
	for range cap(ended) {
		if failed := <-ended; failed != nil && err == nil {
			err = failed
			cancel() // the others end
		}
	}
	j.pass.written = j.bytes
	return refusal(err)
}

// expected returns the number of entries that the journal declares, but at most one for each byte of its files. So the
// memory that Reserve takes is at most a few times the size of the files, even for hostile input.
func (j *journal) expected() int64 {
	return max(0, min(j.entries, int64(j.db.Metrics().DiskSpaceUsage())))
}

// read passes the blocks of the journal to hand, in order. It checks that no item is missing.
func (j *journal) read(hand func(kind byte, block []byte) error, p *Progress) error {
	iter, err := j.db.NewIter(&pebble.IterOptions{LowerBound: itemKey(0), UpperBound: itemKey(j.next)})
	if err != nil {
		return err
	}
	last := uint64(0)
	for iter.First(); iter.Valid(); iter.Next() {
		first, before := last == 0, j.bytes
		if last, err = j.readItem(iter, last, hand); err != nil {
			return errors.Join(err, iter.Close())
		}
		if first {
			p.begin(int64(j.next - last))
		}
		p.add(j.bytes - before)
	}
	return iter.Close() // this also returns errors of the iteration
}

func (j *journal) readItem(iter *pebble.Iterator, last uint64, hand func(kind byte, block []byte) error) (uint64,
	error) {
	number, err := itemNumber(iter.Key())
	if err != nil {
		return 0, err
	}
	if j.first == 0 {
		j.first = number
	}
	if last == 0 && number != j.first {
		return 0, fmt.Errorf("%w (it begins at item %d, not %d)", ErrDamaged, number, j.first)
	}
	if last > 0 && number != last+1 {
		return 0, fmt.Errorf("%w (the items between %d and %d are missing)", ErrDamaged, last, number)
	}
	value, err := iter.ValueAndErr()
	if err != nil {
		return 0, err
	}
	j.bytes += int64(len(iter.Key()) + len(value))
	switch {
	case len(value) > 0 && value[0] < shortBlock:
		return 0, fmt.Errorf("%w (item %d has an older encoding than format %d)", ErrOlder, number, oldestFormat)
	case len(value) > 0 && value[0] < orderedBlock+laneCount:
		return number, hand(value[0], append([]byte{}, value[1:]...))
	case len(value) > 0 && (value[0] == clockRecord || value[0] == imageRecord):
		return number, nil
	}
	return 0, fmt.Errorf("%w (item %d is of an unknown kind)", ErrDamaged, number)
}
