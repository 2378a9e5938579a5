package raftstore

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
)

const (
	// drainChunk is how many changes are written at once.
	drainChunk = 4096
	// maxPasses and smallPass bound the passes before the standstill: each writes what
	// changed during the one before, until it is little.
	maxPasses, smallPass = 12, 2048
)

// restFor is how long each of the first passes rests after each chunk, in times of
// what the chunk took: what is written in the background must not cost decisions
// their turn at the processor and the disk. Later passes must be faster than
// changes come, or there would be no end.
var restFor = [maxPasses]time.Duration{3, 1}

// errHurry ends a pass because the table is about to be emptied or replaced.
var errHurry = errors.New("interrupted")

// precopy writes what changed to the images while entries go on being applied, so
// that the standstill that follows is short.
func (m *machine) precopy() error {
	for i := range maxPasses {
		busy := time.Now()
		n, err := m.pass(func(chunk []engine.Change) error {
			err := m.images.Write(chunk)
			time.Sleep(restFor[i] * time.Since(busy))
			busy = time.Now()
			return err
		})
		if err != nil || n < smallPass {
			return err
		}
	}
	return nil
}

// pass drains what changed since the last one.
func (m *machine) pass(write func([]engine.Change) error) (n int, err error) {
	m.draining.Lock()
	defer m.draining.Unlock()
	err = m.table.Load().Drain(drainChunk, func(chunk []engine.Change) error {
		if m.hurry.Load() {
			return errHurry
		}
		n += len(chunk)
		return write(chunk)
	})
	return n, err
}

// Snapshot is the standstill: it takes the last changes, in memory, and the state
// that goes with them.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	start := time.Now()
	defer func() { m.standstill.Store(int64(time.Since(start))) }()
	s := &snapshot{machine: m, state: m.state}
	_, err := m.pass(func(chunk []engine.Change) error {
		s.keep(chunk)
		return nil
	})
	if m.faults.SnapshotWithoutStamp {
		s.state.At = engine.Stamp{NowNs: 1}
	}
	return s, err
}

// snapshot is a table at one entry: what the images have, and the changes since.
type snapshot struct {
	machine *machine
	state   state
	changes []engine.Change
}

func (s *snapshot) keep(chunk []engine.Change) {
	for _, c := range chunk {
		kept := engine.Change{Key: append([]byte(nil), c.Key...)}
		if c.Value != nil {
			kept.Value = append([]byte{}, c.Value...)
		}
		s.changes = append(s.changes, kept)
	}
}

// Persist completes the image.
func (s *snapshot) Persist(to raft.SnapshotSink) error {
	sink, ok := to.(*sink)
	if !ok {
		return fmt.Errorf("a snapshot sink of type %T", to)
	}
	for rest := s.changes; len(rest) > 0; {
		n := min(len(rest), drainChunk)
		if err := s.machine.images.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return sink.seal(s.state)
}

// Release has nothing to let go of.
func (s *snapshot) Release() {}

// Restore replaces the table by an image, or leaves everything as it is and ends
// the process: a node that cannot read what it must start from does not start.
func (m *machine) Restore(from io.ReadCloser) error {
	id, err := imageOf(from)
	if err != nil {
		return err
	}
	m.hurry.Store(true)
	m.draining.Lock()
	defer m.draining.Unlock()
	m.hurry.Store(false)
	if err := m.load(id); err != nil {
		m.fatal(fmt.Errorf("image %s: %w", id, err))
		return err
	}
	m.logBytes.Store(0)
	return nil
}

func (m *machine) load(id string) error {
	var (
		s     state
		table *engine.Table
	)
	loader := &lateLoader{}
	err := m.images.Load(id, func(encoded []byte) (engine.Stamp, error) {
		var err error
		if s, err = decodeState(encoded); err != nil {
			return engine.Stamp{}, err
		}
		m.options.IDLifetimeNs = s.Founding.IDLifetimeNs
		table = engine.NewTable(m.options)
		loader.Table = table
		return s.At, nil
	}, loader)
	if err != nil {
		return err
	}
	m.table.Store(table)
	m.commit(s)
	if s.Founding.ClusterID != "" {
		m.founded(s.Founding)
	}
	return nil
}

// lateLoader is a table that is made once the image's state is known.
type lateLoader struct{ *engine.Table }
