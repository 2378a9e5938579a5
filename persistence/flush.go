package persistence

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// Flush writes the changes since the last flush, and returns when they are on disk. It calls now after it has taken
// the entries of a batch, so no clock record is earlier than an entry of its batch. A flush without changes writes
// nothing while the last record is younger than idleRecordNs. A large flush pauses between its steps (see spread).
// With force, Flush always writes a record and never pauses.
func (s *Store) Flush(from Drainer, now func() Record, force bool) error {
	s.last.Flush++
	s.spread.begin()
	for s.journal.renew(from) {
		s.spread.pause(force)
	}
	changed := false
	err := from.Drain(chunkEntries, func(chunk []engine.Change) error {
		changed = true
		err := inBatches(chunk, func(batch []engine.Change) error { return s.commit(batch, now(), pebble.NoSync) })
		s.spread.pause(force)
		return err
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
	return s.writeMark()
}

// writeMark records in FLUSHED that the store contains everything committed so far. The caller has synced it.
func (s *Store) writeMark() error {
	return s.marks.write(mark{Flush: s.last.Flush, Item: s.journal.next})
}

// inBatches splits a chunk into batches of bounded size and writes each.
func inBatches(chunk []engine.Change, write func([]engine.Change) error) error {
	for len(chunk) > 0 {
		n := batchLen(chunk)
		if err := write(chunk[:n]); err != nil {
			return err
		}
		chunk = chunk[n:]
	}
	return nil
}

// batchLen returns the number of leading changes that form one batch: at least one.
func batchLen(chunk []engine.Change) int {
	bytes := 0
	for i, c := range chunk {
		if bytes += len(c.Key) + len(c.Value); bytes > maxBatchBytes && i > 0 {
			return i
		}
	}
	return len(chunk)
}

// commit writes changes and the clock record now as one atomic batch. It sets the flush number of the record.
func (s *Store) commit(changes []engine.Change, now Record, sync *pebble.WriteOptions) error {
	now.Flush = s.last.Flush
	if err := s.journal.writeRecord(changes, clockRecord, now.encode(), sync); err != nil {
		return err
	}
	s.last, s.hasLast = now, true
	return nil
}
