package sharedlog

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/weir-project/weir/raftstore/wallog"
)

// Base is the log that holds the records. Its entries have consecutive indexes, which this package calls positions.
type Base interface {
	raft.LogStore
	io.Closer
}

// Log is the log of a host. Its methods may be called concurrently.
type Log struct {
	open      func() (Base, error)
	limits    Limits
	compactor compactor

	opening sync.Mutex // held by Part while it opens the log, and by DropClosed and Close
	opened  bool
	closed  bool
	err     error // of the opening
	base    Base

	queue queue

	// mu guards the fields below and the indexes of all parts. Only the caller that writes changes them (commit.go), so
	// that caller may read them without mu.
	mu     sync.RWMutex
	parts  map[uint32]*Part
	last   uint64 // position of the last record, or 0
	spans  spans
	writes uint64 // appends so far
	target uint64 // live records before this position are to be written again
}

// Limits bound the records that a Log keeps. The zero values of its fields are replaced by defaults.
type Limits struct {
	// FreeBytes is the size of dead records at the beginning that are removed together; 0: the size of a file.
	FreeBytes int64
	// DeadBytes is the size of dead records that a Log keeps before it writes live records again, if the live records
	// are smaller. Otherwise it keeps as many as there are live records; 0: four files.
	DeadBytes int64
}

// New returns a log on the Base that open returns. The first call of Part opens it.
func New(open func() (Base, error), limits Limits) *Log {
	if limits.FreeBytes == 0 {
		limits.FreeBytes = wallog.HeadroomBytes
	}
	if limits.DeadBytes == 0 {
		limits.DeadBytes = 4 * wallog.HeadroomBytes
	}
	l := &Log{open: open, limits: limits, parts: map[uint32]*Part{}, spans: spans{each: limits.FreeBytes / 16}}
	l.compactor.wake = make(chan struct{}, 1)
	l.compactor.stop = make(chan struct{})
	return l
}

// Open opens the Base and rebuilds the index, at the first call. Later calls return the same error.
func (l *Log) Open() error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.opened {
		return l.err
	}
	l.opened = true
	if l.base, l.err = l.open(); l.err != nil {
		return l.err
	}
	if l.err = l.scan(); l.err != nil {
		l.err = errors.Join(l.err, l.base.Close())
		l.base = nil
		return l.err
	}
	l.compactor.running.Go(l.runCompactor)
	return nil
}

// Part opens the part with a name, which no other caller has open. A name without records has an empty log.
func (l *Log) Part(name uint32) (*Part, error) {
	if err := l.Open(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.part(name)
	if p.open || name == 0 {
		return nil, fmt.Errorf("part %08x of the shared log is in use", name)
	}
	p.open = true
	return p, nil
}

// part returns the part with a name, which it adds if necessary. The caller holds mu.
func (l *Log) part(name uint32) *Part {
	p := l.parts[name]
	if p == nil {
		p = &Part{log: l, name: name, writing: make(chan struct{}, 1), stable: map[string]value{}}
		l.parts[name] = p
	}
	return p
}

// DropClosed ends the parts that are not open, for good. Their records no longer count as live.
func (l *Log) DropClosed() error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.base == nil {
		return nil // no part was opened
	}
	r := &request{}
	l.mu.RLock()
	for _, p := range l.parts {
		if !p.open {
			r.add(record{kind: kindDrop, part: p.name}, raft.Log{})
		}
	}
	l.mu.RUnlock()
	if len(r.records) == 0 {
		return nil
	}
	defer l.compactor.look()
	return l.commit(r)
}

// Close closes the Base. The parts must not be used afterwards.
func (l *Log) Close() error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.err == nil {
		l.opened, l.err = true, wal.ErrClosed
	}
	if l.base == nil || l.closed {
		return nil
	}
	l.closed = true
	close(l.compactor.stop)
	l.compactor.running.Wait()
	return l.base.Close()
}

// Size returns about the size of all records in the log, and of those that are live.
func (l *Log) Size() (all, live int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.spans.bytes(), l.live()
}

// Appends returns the number of appends so far. Each is one sync of the Base.
func (l *Log) Appends() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.writes
}

// live returns about the size of the live records.
func (l *Log) live() (live int64) {
	for _, p := range l.parts {
		live += p.entries.bytes
		for key, v := range p.stable {
			live += int64(len(key)+len(v.data)) + recordOverhead
		}
	}
	return live
}
