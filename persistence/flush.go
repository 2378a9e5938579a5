package persistence

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// Drainer is what a flush needs of engine.Table.
type Drainer interface {
	Drain(maxChunk int, emit func([]engine.Change) error) error
}

// Flush writes what changed since the last flush and returns when it is on disk.
// now is asked for the time after the entries of a batch were taken, so that no
// record is behind an entry it travels with. Unless force is set, a flush that
// finds nothing to write leaves the disk alone while the record is fresh.
func (s *Store) Flush(from Drainer, now func() Record, force bool) error {
	s.last.Flush++
	changed := false
	err := from.Drain(chunkEntries, func(chunk []engine.Change) error {
		for len(chunk) > 0 {
			n := batchLen(chunk)
			if err := s.commit(chunk[:n], now(), pebble.NoSync); err != nil {
				return err
			}
			chunk, changed = chunk[n:], true
		}
		return nil
	})
	if err != nil {
		return err
	}
	end := now()
	if !changed && !force && end.LimiterNs-s.last.LimiterNs < idleRecordNs {
		return nil
	}
	if err := s.commit(nil, end, pebble.Sync); err != nil {
		return err
	}
	if s.last.Flush%markEvery == 0 {
		return s.dir.writeMark(s.last.Flush)
	}
	return nil
}

// batchLen returns how many leading changes make one batch: at least one.
func batchLen(chunk []engine.Change) int {
	bytes := 0
	for i, c := range chunk {
		if bytes += len(c.Key) + len(c.Value); bytes > maxBatchBytes && i > 0 {
			return i
		}
	}
	return len(chunk)
}

// commit writes changes and the clock record as one atomic batch. The number of
// the flush is the store's.
func (s *Store) commit(changes []engine.Change, now Record, sync *pebble.WriteOptions) error {
	b := s.db.NewBatch()
	defer b.Close()
	if err := addChanges(b, changes); err != nil {
		return err
	}
	return s.seal(b, now, sync)
}

// addChanges adds changes to a batch.
func addChanges(b *pebble.Batch, changes []engine.Change) error {
	for _, c := range changes {
		if c.Value == nil {
			op := b.DeleteDeferred(1 + len(c.Key))
			setKey(op.Key, c.Key)
			if err := op.Finish(); err != nil {
				return err
			}
			continue
		}
		op := b.SetDeferred(1+len(c.Key), len(c.Value))
		setKey(op.Key, c.Key)
		copy(op.Value, c.Value)
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return nil
}

func setKey(dst, key []byte) {
	dst[0] = entryPrefix
	copy(dst[1:], key)
}

// seal adds the clock record to a batch and commits it.
func (s *Store) seal(b *pebble.Batch, now Record, sync *pebble.WriteOptions) error {
	now.Flush = s.last.Flush
	if err := b.Set(clockKey, now.encode(), nil); err != nil {
		return err
	}
	if err := b.Commit(sync); err != nil {
		return err
	}
	s.last, s.hasLast = now, true
	return nil
}
