package fsm

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

const (
	// drainChunk is the number of changes that are written at once: a fraction of a millisecond's work. A longer burst
	// in the background would delay decisions on a machine with few processors.
	drainChunk = 256
	// maxPasses and smallPass bound the passes before the standstill. Each pass writes the changes made during the
	// previous one, until few remain.
	maxPasses, smallPass = 12, 2048
)

// restFor is the pause after each chunk in the first passes before a standstill, as a multiple of the chunk's
// duration. Later passes must be faster than changes arrive, or they would never end.
var restFor = [maxPasses]time.Duration{7, 3, 1}

// maxPause bounds a pause. A chunk that took long only because it waited for a processor did not delay other work.
const maxPause = 2 * time.Millisecond

// ErrInterrupted ends a pass because the table is about to be emptied or replaced.
var ErrInterrupted = errors.New("interrupted")

// Precopy writes the changes to the images while entries are applied, so that the following standstill is short. It
// pauses between chunks while fewer than calmBytes of log have arrived since the last snapshot.
func (m *FSM) Precopy(calmBytes int64) error {
	busy := time.Now()
	rest := func(times time.Duration) {
		time.Sleep(pauseAfter(time.Since(busy), times, m.LogBytes.Load() < calmBytes))
		busy = time.Now()
	}
	for more := true; more; rest(restFor[0]) {
		var err error
		if more, err = m.renew(); err != nil {
			return err
		}
	}
	for i := range maxPasses {
		n, err := m.pass(func(chunk []engine.Change) error {
			defer rest(restFor[i])
			return m.Images.Write(chunk)
		})
		if err != nil || n < smallPass {
			return err
		}
	}
	return nil
}

// pauseAfter returns the pause after work that took some time: times that time, at most maxPause, and 0 if the log
// is not calm.
func pauseAfter(took, times time.Duration, calm bool) time.Duration {
	if !calm {
		return 0
	}
	return min(times*took, maxPause)
}

// renew carries out one step of the images' rewrite pass.
func (m *FSM) renew() (more bool, err error) {
	m.draining.Lock()
	defer m.draining.Unlock()
	return m.Images.Renew(m.Table.Load())
}

// pass writes the changes since the last pass.
func (m *FSM) pass(write func([]engine.Change) error) (n int, err error) {
	m.draining.Lock()
	defer m.draining.Unlock()
	if err := m.writePending(); err != nil {
		return 0, err
	}
	err = m.Table.Load().Drain(drainChunk, func(chunk []engine.Change) error {
		if m.interrupt.Load() {
			return ErrInterrupted
		}
		n += len(chunk)
		return write(chunk)
	})
	return n, err
}

// writePending writes the changes that were taken at standstills. The Raft library may abandon a snapshot after its
// standstill, and the next snapshot must not lack those changes. The caller holds draining.
func (m *FSM) writePending() error {
	for len(m.pending) > 0 {
		n := min(len(m.pending), drainChunk)
		if err := m.Images.Write(m.pending[:n]); err != nil {
			return err
		}
		m.pending = m.pending[n:]
	}
	m.pending = nil
	return nil
}

// replaced records that the table was emptied or replaced, so changes taken from it before belong to no image. The
// caller holds draining.
func (m *FSM) replaced() {
	m.pending = nil
	m.epoch++
}

// Snapshot is the standstill, in which no entry is applied. It copies the last changes to memory, and the state that
// belongs to them.
func (m *FSM) Snapshot() (raft.FSMSnapshot, error) {
	start := time.Now()
	defer func() { m.Standstill.Store(int64(time.Since(start))) }()
	m.draining.Lock()
	defer m.draining.Unlock()
	s := &snapshot{machine: m, state: m.State, epoch: m.epoch}
	err := m.Table.Load().Drain(drainChunk, func(chunk []engine.Change) error {
		m.keep(chunk)
		return nil
	})
	if m.Faults.Has(faults.SnapshotWithoutStamp) {
		s.state.At = engine.Stamp{NowNs: 1}
	}
	return s, err
}

func (m *FSM) keep(chunk []engine.Change) {
	for _, c := range chunk {
		kept := engine.Change{Key: append([]byte(nil), c.Key...)}
		if c.Value != nil {
			kept.Value = append([]byte{}, c.Value...)
		}
		m.pending = append(m.pending, kept)
	}
}

// snapshot is the table at one entry: the content of the images, and the changes that the FSM keeps for them.
type snapshot struct {
	machine *FSM
	state   State
	epoch   uint64
}

// Persist completes the image. No other change may reach the images before it returns.
func (s *snapshot) Persist(to raft.SnapshotSink) error {
	sink, ok := to.(*images.Sink)
	if !ok {
		return fmt.Errorf("a snapshot sink of type %T", to)
	}
	m := s.machine
	m.draining.Lock()
	defer m.draining.Unlock()
	if m.epoch != s.epoch {
		guards.ReplacedTable.Hit()
		return ErrInterrupted
	}
	if err := m.writePending(); err != nil {
		return err
	}
	return sink.Seal(s.state.Index, s.state.Encode())
}

// Release does nothing.
func (s *snapshot) Release() {}

// Restore replaces the table by an image. If it cannot load the image, it changes nothing and ends the process,
// because a node must not start without its state.
func (m *FSM) Restore(from io.ReadCloser) error {
	image, err := images.StreamOf(from)
	if err != nil {
		return err
	}
	m.interrupt.Store(true)
	m.draining.Lock()
	defer m.draining.Unlock()
	m.interrupt.Store(false)
	m.replaced()
	if err := m.load(image.Meta.ID); err != nil {
		m.Fatal(fmt.Errorf("image %s: %w", image.Meta.ID, err))
		return err
	}
	m.StoreConfiguration(image.Meta.ConfigurationIndex, image.Meta.Configuration)
	m.LogBytes.Store(0)
	return nil
}

func (m *FSM) load(id string) error {
	var (
		s     State
		table *engine.Table
	)
	loader := &lateLoader{}
	err := m.Images.Load(id, func(encoded []byte) (engine.Stamp, error) {
		var err error
		if s, err = decodeState(encoded); err != nil {
			return engine.Stamp{}, err
		}
		if s.Format > m.Newest {
			return engine.Stamp{},
				fmt.Errorf("%w: the log had entries of format %d, this one reads %d", failure.ErrNewer,
					s.Format, m.Newest)
		}
		m.options.IDLifetimeNs, m.options.HashSeed = s.Founding.IDLifetimeNs, s.Founding.HashSeed
		m.options.EventsBytes = s.Founding.EventsBytes
		table = engine.NewTable(m.options)
		loader.Table = table
		return s.At, nil
	}, loader)
	if err != nil {
		return err
	}
	m.put(table, s.Format)
	runtime.GC() // the replaced table may be large, and its memory does not press the collector
	m.commit(s, raftlog.Arrival{Index: s.Index, RawNs: m.Source.MonotonicNs()})
	m.resetApplied(s.Index)
	m.Reloaded()
	if s.Founding.ClusterID != "" {
		m.Founded(s.Founding)
	}
	return nil
}

// lateLoader is a table that is created when the image's state is known.
type lateLoader struct{ *engine.Table }
