package snapshots

import (
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/latency"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// calmSnapshots times SnapshotBytes is the length of the log up to which a snapshot pauses between its steps.
	// Beyond it, a short log matters more than the latency of decisions.
	calmSnapshots = 2
	// MaxTrailing and minTrailing bound the number of log entries that are kept although a snapshot contains them. A
	// follower that was away for a moment catches up from them.
	MaxTrailing, minTrailing = 10_240, 64
)

// Snapshots takes the snapshots of a group: when its log has become long, and on request.
type Snapshots struct {
	Config

	taken    chan struct{} // holds a token while a snapshot is taken; capacity 1
	taking   timers.Single // a snapshot that is due waits, or is taken
	took     atomic.Bool   // a snapshot was taken because the log was long enough
	lastSave atomic.Int64  // Unix nanoseconds of the last snapshot; 0: never
	Took     latency.Histogram
}

// Config has what Snapshots need.
type Config struct {
	Self string // the id of this node
	// SnapshotBytes is the length of the log since the last snapshot that makes a snapshot due.
	SnapshotBytes int64
	// Wanted makes a snapshot due that removes the log entries before this index, because they keep the shared log from
	// becoming shorter. It does not remove the last minTrailing entries. 0: no such snapshot is due.
	Wanted *atomic.Uint64

	Raft      Raft
	Trailing  Trailing
	FSM       *fsm.FSM
	Images    Images
	Permit    Permit // of all groups of the process; acquired before taken
	ClockFrom func(at engine.Stamp, arrivedRawNs int64) persistence.Clock
	Life      *timers.Lifetime
	Log       *slog.Logger
}

// Raft takes the snapshots.
type Raft interface {
	Snapshot() raft.SnapshotFuture
	// Await waits for the future's answer, or for the end of the Raft library.
	Await(f raft.Future) error
}

// Trailing sets the length of the log behind a snapshot.
type Trailing interface {
	LastIndex() uint64
	ReloadableConfig() raft.ReloadableConfig
	ReloadConfig(c raft.ReloadableConfig) error
}

// Images are the snapshots on disk.
type Images interface {
	// List returns the images, the newest first.
	List() ([]persistence.ImageInfo, error)
	Send(id string) (io.ReadCloser, persistence.ImageInfo, error)
}

// Permit lets one group of a process take a snapshot at a time; see package permit.
type Permit interface {
	Acquire(logBytes func() int64, stop <-chan struct{}) bool
	AcquireForOperator(stop <-chan struct{}) bool
	Release()
}

// New returns the Snapshots of a group.
func New(c Config) *Snapshots { return &Snapshots{Config: c, taken: make(chan struct{}, 1)} }

// TakeIfDue begins a snapshot if the log since the last one has become long enough and no such snapshot is under way.
func (s *Snapshots) TakeIfDue() {
	if s.isDue() {
		s.taking.Go(s.Life.Go, s.takeDue)
	}
}

// takeDue takes a snapshot when this group may, if it is still due then.
func (s *Snapshots) takeDue() {
	if !s.Permit.Acquire(s.FSM.LogBytes.Load, s.Life.Stop) {
		return
	}
	defer s.Permit.Release()
	select {
	case s.taken <- struct{}{}:
	case <-s.Life.Stop:
		return
	}
	defer func() { <-s.taken }()
	if !s.isDue() {
		return
	}
	if s.Take(s.Wanted.Swap(0)) == nil {
		s.took.Store(true)
	}
}

// isDue reports whether the log since the last snapshot is long enough, or a snapshot is wanted.
func (s *Snapshots) isDue() bool {
	if s.Wanted.Load() > 0 {
		return true
	}
	if s.took.Load() {
		return s.FSM.LogBytes.Load() >= s.SnapshotBytes
	}
	return s.FSM.LogBytes.Load() >= FirstSnapshotBytes(s.FSM.Members(), s.Self, s.SnapshotBytes)
}

// FirstSnapshotBytes returns the bytes of log after which a node takes its first snapshot. All nodes count the same
// log. With equal bounds they would all write at the same moments, and slow down the majority that a decision waits
// for.
func FirstSnapshotBytes(servers []raft.Server, id string, bytes int64) int64 {
	position := 1
	for _, other := range servers {
		if string(other.ID) < id {
			position++
		}
	}
	return min(bytes*int64(position)/int64(max(len(servers), 1)), bytes)
}

// Take takes a snapshot. It copies most changes while entries are applied, and the last changes at a standstill. low is
// a value of Wanted.
func (s *Snapshots) Take(low uint64) error {
	start := time.Now()
	s.trail(low)
	bytes, entries := s.FSM.LogBytes.Load(), s.FSM.LogEntries.Load()
	err := s.FSM.Precopy(calmSnapshots * s.SnapshotBytes)
	copied := time.Since(start)
	if err == nil {
		err = s.Raft.Await(s.Raft.Snapshot())
	}
	if errors.Is(err, fsm.ErrInterrupted) || errors.Is(err, raft.ErrRaftShutdown) {
		return failure.ErrUnavailable
	}
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		s.Log.Warn("no snapshot could be taken; the node tries again", "error", err)
		return err
	}
	s.FSM.LogBytes.Add(-bytes)
	s.FSM.LogEntries.Add(-entries)
	s.lastSave.Store(time.Now().UnixNano())
	s.Took.Observe(time.Since(start), 1)
	s.Log.Debug("snapshot taken", "took", time.Since(start), "precopy", copied, "standstill",
		time.Duration(s.FSM.Standstill.Load()), "entries", entries, "bytes", bytes)
	return nil
}

// trail sets the number of entries that are kept although a snapshot contains them. It divides SnapshotBytes by the
// average size of the latest entries, so that the log is bounded by bytes. Entries before low are not kept, except the
// last minTrailing.
func (s *Snapshots) trail(low uint64) {
	bytes, entries := s.FSM.LogBytes.Load(), s.FSM.LogEntries.Load()
	if entries == 0 && low == 0 {
		return
	}
	keep := int64(MaxTrailing)
	if entries > 0 {
		keep = s.SnapshotBytes * entries / max(bytes, 1)
	}
	if low > 0 {
		keep = min(keep, int64(s.Trailing.LastIndex()+1)-int64(low))
	}
	c := s.Trailing.ReloadableConfig()
	c.TrailingLogs = uint64(min(max(keep, minTrailing), MaxTrailing))
	if err := s.Trailing.ReloadConfig(c); err != nil {
		s.Log.Warn("cannot set the length of the log", "error", err)
	}
}

// Now takes a snapshot for an operator. It goes before all groups whose logs are long. It waits for the snapshot of
// another group at most for permit.OperatorPatience, and then for the snapshot of this group, if one is under way.
func (s *Snapshots) Now() error {
	if !s.Permit.AcquireForOperator(s.Life.Stop) {
		return failure.ErrUnavailable
	}
	defer s.Permit.Release()
	select {
	case s.taken <- struct{}{}:
	case <-s.Life.Stop:
		return failure.ErrUnavailable
	}
	defer func() { <-s.taken }()
	if s.Life.Closing() {
		return failure.ErrUnavailable
	}
	return s.Take(0)
}

// Last returns the time of the last snapshot, or the zero time if there was none.
func (s *Snapshots) Last() time.Time {
	ns := s.lastSave.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
