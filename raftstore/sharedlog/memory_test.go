package sharedlog_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/sharedlog"
)

var errDisk = errors.New("the disk fails")

// memory is a Base in memory. It survives the logs that are opened on it.
type memory struct {
	mu          sync.Mutex
	logs        map[uint64]raft.Log
	first, last uint64
	appends     int

	fails, noTruncate bool

	gate  chan struct{}       // an append receives from it before it begins; nil: no gate
	begun chan struct{}       // an append sends to it before it waits at the gate
	after func(image *memory) // is called with a copy before and after each change; nil: it is not
}

func newMemory() *memory { return &memory{logs: map[uint64]raft.Log{}} }

// image returns a copy of the records, which is what a crash leaves.
func (m *memory) image() *memory {
	return &memory{logs: maps.Clone(m.logs), first: m.first, last: m.last}
}

func (m *memory) Close() error { return nil }

func (m *memory) FirstIndex() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first, nil
}

func (m *memory) LastIndex() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, nil
}

func (m *memory) GetLog(index uint64, to *raft.Log) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.logs[index]
	if !ok {
		return raft.ErrLogNotFound
	}
	l.Data, l.Extensions = slices.Clone(l.Data), slices.Clone(l.Extensions)
	*to = l
	return nil
}

func (m *memory) StoreLog(l *raft.Log) error { return m.StoreLogs([]*raft.Log{l}) }

func (m *memory) StoreLogs(ls []*raft.Log) error {
	if m.gate != nil {
		m.begun <- struct{}{}
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return errDisk
	}
	return m.change(func() error {
		m.appends++
		for _, l := range ls {
			if m.last > 0 && l.Index != m.last+1 {
				return fmt.Errorf("record %d after %d", l.Index, m.last)
			}
			if m.last == 0 {
				m.first = l.Index
			}
			m.last, m.logs[l.Index] = l.Index, *l
		}
		return nil
	})
}

func (m *memory) DeleteRange(low, high uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails || m.noTruncate {
		return errDisk
	}
	if low != m.first || high >= m.last {
		return fmt.Errorf("records %d to %d are not at the beginning of %d to %d", low, high, m.first, m.last)
	}
	return m.change(func() error {
		for i := low; i <= high; i++ {
			delete(m.logs, i)
		}
		m.first = high + 1
		return nil
	})
}

func (m *memory) change(do func() error) error {
	if m.after == nil {
		return do()
	}
	m.after(m.image())
	err := do()
	m.after(m.image())
	return err
}

// small are limits that let a test truncate the log often.
var small = sharedlog.Limits{FreeBytes: 4 << 10, DeadBytes: 8 << 10}

func open(base sharedlog.Base, limits sharedlog.Limits) *sharedlog.Log {
	return sharedlog.New(func() (sharedlog.Base, error) { return base, nil }, limits)
}

func part(t testing.TB, l *sharedlog.Log, name uint32) *sharedlog.Part {
	t.Helper()
	p, err := l.Part(name)
	require.NoError(t, err)
	return p
}

func entry(index, term uint64, size int) *raft.Log {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(index*31 + term + uint64(i)*7)
	}
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: data}
}

// model is what a part must hold.
type model struct {
	*raft.InmemStore
	stable map[string]uint64
}

func newModel() *model { return &model{raft.NewInmemStore(), map[string]uint64{}} }

func (m *model) clone() *model {
	c := newModel()
	c.stable = maps.Clone(m.stable)
	first, _ := m.FirstIndex()
	last, _ := m.LastIndex()
	for i := first; i <= last && i > 0; i++ {
		var l raft.Log
		_ = m.GetLog(i, &l)
		_ = c.StoreLog(&l)
	}
	return c
}

// differs returns an error that names a difference between a part and its model.
func (m *model) differs(p *sharedlog.Part) error {
	first, _ := m.FirstIndex()
	last, _ := m.LastIndex()
	gotFirst, err1 := p.FirstIndex()
	gotLast, err2 := p.LastIndex()
	if err := errors.Join(err1, err2); err != nil || first != gotFirst || last != gotLast {
		return fmt.Errorf("entries %d to %d instead of %d to %d: %w", gotFirst, gotLast, first, last, err)
	}
	for i := first; i <= last && i > 0; i++ {
		var want, got raft.Log
		_ = m.GetLog(i, &want)
		if err := p.GetLog(i, &got); err != nil || !same(&want, &got) {
			return fmt.Errorf("entry %d is %+v instead of %+v: %w", i, got, want, err)
		}
	}
	for _, outside := range []uint64{first - 1, last + 1} {
		if err := p.GetLog(outside, new(raft.Log)); outside != 0 && !errors.Is(err, raft.ErrLogNotFound) {
			return fmt.Errorf("entry %d: %w", outside, err)
		}
	}
	for key, want := range m.stable {
		raw, err1 := p.Get([]byte(key))
		got, err2 := p.GetUint64([]byte(key))
		if err := errors.Join(err1, err2); err != nil || got != want || binary.LittleEndian.Uint64(raw) != want {
			return fmt.Errorf("%s is %d instead of %d: %w", key, got, want, err)
		}
	}
	return nil
}

func same(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && string(a.Data) == string(b.Data) &&
		string(a.Extensions) == string(b.Extensions) && a.AppendedAt.Equal(b.AppendedAt)
}
