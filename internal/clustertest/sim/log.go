package sim

import (
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/wallog"
)

// segmentBytes is small, so that the log changes files often.
const segmentBytes = 32 << 10

// faultyLog is the replicated log on a simulated disk. Its writes can be made to hang. They hang here and not in the
// disk, because the disk holds mutexes.
type faultyLog struct {
	*wal.WAL
	broke func()          // ends the process
	dead  <-chan struct{} // closed when it has ended

	mu    sync.Mutex
	stall chan struct{} // closed when the disk works again; nil: it works
	hung  bool          // a stall began
	freed bool          // no further stall is possible
}

var (
	_ raft.LogStore          = (*faultyLog)(nil)
	_ raft.StableStore       = (*faultyLog)(nil)
	_ raft.MonotonicLogStore = (*faultyLog)(nil)
)

func openLog(dir string, d *disk, noSync bool, dead <-chan struct{}, broke func()) (*faultyLog, error) {
	if err := persistence.MakeDirectory(d, dir); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	files := walFiles{d, noSync}
	segments, meta := segment.NewFiler(dir, files), &walMeta{on: d}
	if err := wallog.Mend(dir, files, segments, meta, noSync); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	w, err := wal.Open(dir,
		wal.WithSegmentFiler(segments),
		wal.WithMetaStore(meta),
		wal.WithSegmentSize(segmentBytes),
		wal.WithLogger(hclog.NewNullLogger()))
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return &faultyLog{WAL: w, broke: broke, dead: dead}, nil
}

// hang makes writes wait until release.
func (l *faultyLog) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stall == nil && !l.freed {
		l.stall, l.hung = make(chan struct{}), true
	}
}

// release ends a stall. With forever no later stall is possible.
func (l *faultyLog) release(forever bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freed = l.freed || forever
	if l.stall != nil {
		close(l.stall)
		l.stall = nil
	}
}

func (l *faultyLog) hasHung() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hung
}

func (l *faultyLog) wait() {
	l.mu.Lock()
	stall := l.stall
	l.mu.Unlock()
	if stall != nil {
		<-stall
	}
}

// StoreLog stores an entry.
func (l *faultyLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs stores entries.
func (l *faultyLog) StoreLogs(entries []*raft.Log) error {
	l.wait()
	return l.WAL.StoreLogs(entries)
}

// GetLog reads an entry. After a failed write the library may expect entries that do not exist, and panics when it
// misses them. In a process that has ended, GetLog therefore returns an entry without effect.
func (l *faultyLog) GetLog(index uint64, entry *raft.Log) error {
	return orNoop(l.WAL.GetLog(index, entry), l.dead, index, entry)
}

// orNoop returns the error of a read. If the process has ended, it sets an entry without effect instead.
func orNoop(err error, dead <-chan struct{}, index uint64, entry *raft.Log) error {
	if err == nil {
		return nil
	}
	select {
	case <-dead:
		*entry = raft.Log{Index: index, Type: raft.LogNoop}
		return nil
	default:
		return err
	}
}

// DeleteRange removes entries.
func (l *faultyLog) DeleteRange(low, high uint64) error {
	l.wait()
	return l.WAL.DeleteRange(low, high)
}

// Set stores a value.
func (l *faultyLog) Set(key, value []byte) error {
	l.wait()
	return l.WAL.Set(key, value)
}

// SetUint64 stores a number. The Raft library panics if it cannot store the term, so the process ends here instead.
func (l *faultyLog) SetUint64(key []byte, value uint64) error {
	l.wait()
	return orBroke(l.WAL.SetUint64(key, value), l.broke, key)
}

// orBroke returns the error of a write of a number. If it is the term, it ends the process instead.
func orBroke(err error, broke func(), key []byte) error {
	if err != nil && string(key) == "CurrentTerm" {
		broke()
		return nil
	}
	return err
}
