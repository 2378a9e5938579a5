package persistence

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// Loader is what a start needs of engine.Table.
type Loader interface {
	Reserve(entries int64)
	Load(at engine.Stamp, key, value []byte) (bool, error)
}

// entryStore is a Pebble store that holds entries.
type entryStore struct{ db *pebble.DB }

// load puts every stored entry into to, judged at the given stamp, with as many
// workers as the process has processors. Entries that have become idle are
// deleted; seal adds to every such batch what must go with it. Any error means
// that the state must not be used.
func (s entryStore) load(at engine.Stamp, to Loader, seal func(*pebble.Batch) error) error {
	bounds, err := s.split(runtime.GOMAXPROCS(0))
	if err != nil {
		return refusal(err)
	}
	entries, err := s.entries()
	if err != nil {
		return refusal(err)
	}
	to.Reserve(entries)
	errs := make([]error, len(bounds)-1)
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			w := &loadWorker{db: s.db, at: at, to: to, seal: seal, idle: s.db.NewBatch()}
			errs[i] = w.run(bounds[i], bounds[i+1])
			errs[i] = errors.Join(errs[i], w.idle.Close())
		})
	}
	workers.Wait()
	return refusal(errors.Join(errs...))
}

// entries is about how many entries are stored: what the tables' own counts say,
// which is too many where a newer table has a key again.
func (s entryStore) entries() (n int64, err error) {
	levels, err := s.db.SSTables(pebble.WithProperties())
	for _, level := range levels {
		for _, table := range level {
			n += int64(table.Properties.NumEntries) - 2*int64(table.Properties.NumDeletions)
		}
	}
	return max(n, 0), err
}

// split divides the entries into at most n ranges of about the same size and
// returns their bounds. The tables Pebble keeps are small and alike, so their
// first keys are the marks of a ruler.
func (s entryStore) split(n int) ([][]byte, error) {
	first, end := []byte{entryPrefix}, []byte{entryPrefix + 1}
	levels, err := s.db.SSTables(pebble.WithKeyRangeFilter(first, end))
	if err != nil {
		return nil, err
	}
	var marks [][]byte
	for _, level := range levels {
		for _, table := range level {
			marks = append(marks, table.Smallest.UserKey)
		}
	}
	slices.SortFunc(marks, slices.Compare[[]byte])
	bounds := [][]byte{first}
	for i := 1; i < n && len(marks) > 0; i++ {
		mark := marks[i*len(marks)/n]
		if slices.Compare(mark, bounds[len(bounds)-1]) > 0 && slices.Compare(mark, end) < 0 {
			bounds = append(bounds, slices.Clone(mark))
		}
	}
	return append(bounds, end), nil
}

// loadWorker loads one range of keys.
type loadWorker struct {
	db   *pebble.DB
	at   engine.Stamp
	to   Loader
	seal func(*pebble.Batch) error
	idle *pebble.Batch // deletes
}

func (w *loadWorker) run(lower, upper []byte) error {
	iter, err := w.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	for iter.First(); iter.Valid(); iter.Next() {
		if err := w.one(iter); err != nil {
			return errors.Join(err, iter.Close())
		}
	}
	if err := iter.Close(); err != nil { // what the iteration ran into, too
		return err
	}
	return w.forget()
}

func (w *loadWorker) one(iter *pebble.Iterator) error {
	value, err := iter.ValueAndErr()
	if err != nil {
		return err
	}
	kept, err := w.to.Load(w.at, iter.Key()[1:], value)
	if err != nil {
		return fmt.Errorf("%w (entry %.64q: %v)", ErrDamaged, iter.Key()[1:], err)
	}
	if kept {
		return nil
	}
	if err := w.idle.Delete(iter.Key(), nil); err != nil || w.idle.Count() < chunkEntries {
		return err
	}
	return w.forget()
}

// forget deletes the idle entries seen so far.
func (w *loadWorker) forget() error {
	if w.idle.Empty() {
		return nil
	}
	if err := w.seal(w.idle); err != nil {
		return err
	}
	err := w.idle.Commit(pebble.NoSync)
	w.idle.Reset()
	return err
}
