package fsm

import (
	"errors"
	"fmt"
	"io"
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
	// drainChunk is how many changes are written at once: a fraction of a millisecond's
	// work. What is written in the background must not cost decisions their turn at the
	// processor, and a longer burst does, on a machine with few.
	drainChunk = 256
	// maxPasses and smallPass bound the passes before the standstill: each writes what
	// changed during the one before, until it is little.
	maxPasses, smallPass = 12, 2048
)

// restFor is how long each of the first passes before a standstill rests after each
// chunk, in times of what the chunk took. Later passes must be faster than changes
// come, or there would be no end.
var restFor = [maxPasses]time.Duration{7, 3, 1}

// longestRest bounds a rest: a chunk that took long because it had no turn at a processor
// was no burden to others.
const longestRest = 2 * time.Millisecond

// ErrHurry ends a pass because the table is about to be emptied or replaced.
var ErrHurry = errors.New("interrupted")

// Precopy writes what changed to the images while entries go on being applied, so
// that the standstill that follows is short. It takes its time as long as fewer than
// calmBytes of log have come since the last snapshot.
func (m *FSM) Precopy(calmBytes int64) error {
	busy := time.Now()
	rest := func(times time.Duration) {
		time.Sleep(restAfter(time.Since(busy), times, m.LogBytes.Load() < calmBytes))
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

// restAfter is how long to rest after work that took so long: so many times that, within
// longestRest, and not at all when it is not calm.
func restAfter(took, times time.Duration, calm bool) time.Duration {
	if !calm {
		return 0
	}
	return min(times*took, longestRest)
}

// renew takes the renewal of the images a step further.
func (m *FSM) renew() (more bool, err error) {
	m.draining.Lock()
	defer m.draining.Unlock()
	return m.Images.Renew(m.Table.Load())
}

// pass writes what changed since the last one.
func (m *FSM) pass(write func([]engine.Change) error) (n int, err error) {
	m.draining.Lock()
	defer m.draining.Unlock()
	if err := m.writePending(); err != nil {
		return 0, err
	}
	err = m.Table.Load().Drain(drainChunk, func(chunk []engine.Change) error {
		if m.hurry.Load() {
			return ErrHurry
		}
		n += len(chunk)
		return write(chunk)
	})
	return n, err
}

// writePending writes what was taken at standstills. The Raft library may give a
// snapshot up after that, and the next must not lack those changes. The caller holds
// draining.
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

// replaced notes that the table was emptied or replaced: what was taken from it
// before is no part of any image. The caller holds draining.
func (m *FSM) replaced() {
	m.pending = nil
	m.epoch++
}

// Snapshot is the standstill: it takes the last changes, in memory, and the state
// that goes with them.
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

// snapshot is a table at one entry: what the images have, and the changes the machine
// keeps for them.
type snapshot struct {
	machine *FSM
	state   State
	epoch   uint64
}

// Persist completes the image. Nothing else may reach the images until that is done.
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
		return ErrHurry
	}
	if err := m.writePending(); err != nil {
		return err
	}
	return sink.Seal(s.state.Index, s.state.Encode())
}

// Release has nothing to let go of.
func (s *snapshot) Release() {}

// Restore replaces the table by an image, or leaves everything as it is and ends
// the process: a node that cannot read what it must start from does not start.
func (m *FSM) Restore(from io.ReadCloser) error {
	image, err := images.StreamOf(from)
	if err != nil {
		return err
	}
	m.hurry.Store(true)
	m.draining.Lock()
	defer m.draining.Unlock()
	m.hurry.Store(false)
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
			return engine.Stamp{}, fmt.Errorf("%w: the log had entries of format %d, this one reads %d", failure.ErrNewer,
				s.Format, m.Newest)
		}
		m.options.IDLifetimeNs = s.Founding.IDLifetimeNs
		table = engine.NewTable(m.options)
		loader.Table = table
		return s.At, nil
	}, loader)
	if err != nil {
		return err
	}
	m.Table.Store(table)
	m.commit(s, raftlog.Arrival{Index: s.Index, RawNs: m.Source.MonotonicNs()})
	m.backTo(s.Index)
	m.Reloaded()
	if s.Founding.ClusterID != "" {
		m.Founded(s.Founding)
	}
	return nil
}

// lateLoader is a table that is made once the image's state is known.
type lateLoader struct{ *engine.Table }
