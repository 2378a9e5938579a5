package sharedlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Part is the log, term and vote of one group.
type Part struct {
	log  *Log
	name uint32
	// writing holds a token while the part writes, which serializes its writes. A write that holds the token sees all
	// earlier writes of the part in the index.
	writing chan struct{}

	// The mutex of log guards these fields.
	open    bool
	entries entries
	stable  map[string]value
	pinned  func(low uint64)
	asked   uint64 // position before which all entries should have gone when pinned was last called
}

// value is a value of the StableStore, and the position of its record.
type value struct {
	data []byte
	at   uint64
}

var (
	_ raft.LogStore          = (*Part)(nil)
	_ raft.StableStore       = (*Part)(nil)
	_ raft.MonotonicLogStore = (*Part)(nil)
)

// OnPinned sets the function that is called when a snapshot of the group would let the log become shorter, if the
// entries before the index low go. The function must return quickly.
func (p *Part) OnPinned(call func(low uint64)) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.pinned = call
}

// Close marks the part as closed. Its records stay until DropClosed.
func (p *Part) Close() error {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.open, p.pinned = false, nil
	return nil
}

// IsMonotonic reports that the entries have consecutive indexes.
func (p *Part) IsMonotonic() bool { return true }

// FirstIndex returns the index of the first entry, or 0 if there is none.
func (p *Part) FirstIndex() (uint64, error) {
	p.log.mu.RLock()
	defer p.log.mu.RUnlock()
	return p.entries.first, nil
}

// LastIndex returns the index of the last entry, or 0 if there is none.
func (p *Part) LastIndex() (uint64, error) {
	p.log.mu.RLock()
	defer p.log.mu.RUnlock()
	return p.entries.last(), nil
}

// GetLog reads an entry.
func (p *Part) GetLog(index uint64, to *raft.Log) error {
	for before := uint64(0); ; {
		at, ok := p.position(index)
		if !ok {
			return raft.ErrLogNotFound
		}
		err := p.log.base.GetLog(at, to)
		switch {
		case errors.Is(err, raft.ErrLogNotFound) && at != before:
			before = at // the entry was removed meanwhile, or written again
		case errors.Is(err, raft.ErrLogNotFound):
			return corrupt(at, "the record of an entry is missing")
		case err != nil:
			return err
		default:
			return p.restore(index, at, to)
		}
	}
}

func (p *Part) position(index uint64) (uint64, bool) {
	p.log.mu.RLock()
	defer p.log.mu.RUnlock()
	return p.entries.position(index)
}

// restore makes the entry from its record.
func (p *Part) restore(index, at uint64, l *raft.Log) error {
	h, err := decodeHeader(l.Extensions)
	if err != nil {
		return corrupt(at, err.Error())
	}
	if h.kind != kindEntry || h.part != p.name || h.index != index {
		return corrupt(at, fmt.Sprintf("another record is in the place of entry %d", index))
	}
	l.Index, l.Extensions = index, h.rest
	return nil
}

// write waits until no other write of the part is under way. It returns the function that ends the write.
func (p *Part) write() (end func()) {
	p.writing <- struct{}{}
	return func() { <-p.writing }
}

// StoreLog stores an entry.
func (p *Part) StoreLog(l *raft.Log) error { return p.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores entries, which must follow the last one.
func (p *Part) StoreLogs(ls []*raft.Log) error {
	if len(ls) == 0 {
		return nil
	}
	defer p.write()()
	last, _ := p.LastIndex()
	r := newRequest(len(ls))
	for _, l := range ls {
		if l.Index == 0 || last > 0 && l.Index != last+1 {
			return fmt.Errorf("non-monotonic log entries: tried to append index %d after %d", l.Index, last)
		}
		last = l.Index
		r.add(record{kind: kindEntry, part: p.name, index: l.Index, rest: l.Extensions}, *l)
	}
	return p.log.commit(r)
}

// DeleteRange removes entries at the beginning or at the end.
func (p *Part) DeleteRange(low, high uint64) error {
	defer p.write()()
	first, _ := p.FirstIndex()
	last, _ := p.LastIndex()
	r := newRequest(1)
	switch {
	case low > high || last == 0 || high < first || low > last:
		return nil
	case low <= first:
		r.add(record{kind: kindLow, part: p.name, index: min(high, last) + 1}, raft.Log{})
	case high >= last:
		r.add(record{kind: kindCut, part: p.name, index: low}, raft.Log{})
	default:
		return errors.New("only entries at the beginning or at the end can be removed from a log")
	}
	defer p.log.compactor.look()
	return p.log.commit(r)
}

// Set stores a value of the Raft library.
func (p *Part) Set(key, data []byte) error {
	defer p.write()()
	r := newRequest(1)
	r.add(record{kind: kindStable, part: p.name, key: key}, raft.Log{Data: bytes.Clone(data)})
	return p.log.commit(r)
}

// Get returns a value, or nil if there is none.
func (p *Part) Get(key []byte) ([]byte, error) {
	p.log.mu.RLock()
	defer p.log.mu.RUnlock()
	return bytes.Clone(p.stable[string(key)].data), nil
}

// SetUint64 stores a number.
func (p *Part) SetUint64(key []byte, n uint64) error {
	return p.Set(key, binary.LittleEndian.AppendUint64(nil, n))
}

// GetUint64 returns a number that SetUint64 stored, or 0 if there is none.
func (p *Part) GetUint64(key []byte) (uint64, error) {
	b, err := p.Get(key)
	switch {
	case err != nil || len(b) == 0:
		return 0, err
	case len(b) != 8:
		return 0, fmt.Errorf("the value of %q is no number", key)
	}
	return binary.LittleEndian.Uint64(b), nil
}
