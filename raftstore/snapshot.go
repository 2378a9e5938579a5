package raftstore

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/latency"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// calmSnapshots is how many times the bytes that make a snapshot may have come until
	// it no longer rests: what is due to keep the log short may then cost decisions time.
	calmSnapshots = 2
	// maxTrailing and minTrailing bound the entries kept behind a snapshot so that a
	// follower that was away for a moment catches up by log.
	maxTrailing, minTrailing = 10_240, 64
)

// snapshots takes the snapshots of a group: when its log has become long, and when asked.
type snapshots struct {
	*host
	raft       *consensus.Raft
	machine    *fsm.FSM
	images     *persistence.Images
	leadership *leadership

	asked    chan chan error
	lastSave atomic.Int64 // Unix nanoseconds of the last snapshot; 0: never
	took     latency.Histogram
}

// snapshot takes a snapshot whenever the log behind the last one has become long
// enough, or someone asks for one, until the node closes.
func (s *snapshots) snapshot() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	due := func() int64 { return turnOf(s.machine.Members(), s.options.NodeID, s.options.SnapshotBytes) }
	for {
		select {
		case <-tick.C:
			if s.machine.LogBytes.Load() >= due() && s.take() == nil {
				due = func() int64 { return s.options.SnapshotBytes }
			}
		case reply := <-s.asked:
			reply <- s.take()
		case <-s.stop:
			return
		}
	}
}

// turnOf returns after how many bytes of log a node takes its first snapshot. All nodes count
// the same log: without turns they would all write at the same moments, when the
// majority that a decision waits for has the least time.
func turnOf(servers []raft.Server, id string, bytes int64) int64 {
	turn := 1
	for _, other := range servers {
		if string(other.ID) < id {
			turn++
		}
	}
	return min(bytes*int64(turn)/int64(max(len(servers), 1)), bytes)
}

// take makes a snapshot: first what changed, while entries go on being applied,
// then the rest at a standstill.
func (s *snapshots) take() error {
	start := time.Now()
	s.trail()
	bytes, entries := s.machine.LogBytes.Load(), s.machine.LogEntries.Load()
	err := s.machine.Precopy(calmSnapshots * s.options.SnapshotBytes)
	copied := time.Since(start)
	if err == nil {
		err = s.raft.Await(s.raft.Snapshot())
	}
	if errors.Is(err, fsm.ErrHurry) || errors.Is(err, raft.ErrRaftShutdown) {
		return failure.ErrUnavailable
	}
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		s.log.Warn("no snapshot could be taken; the next attempt follows", "error", err)
		return err
	}
	s.machine.LogBytes.Add(-bytes)
	s.machine.LogEntries.Add(-entries)
	s.lastSave.Store(time.Now().UnixNano())
	s.took.Observe(time.Since(start), 1)
	s.log.Debug("snapshot taken", "took", time.Since(start), "precopy", copied, "standstill", time.Duration(s.machine.Standstill.Load()), "entries", entries, "bytes", bytes)
	return nil
}

// trail sets how many entries stay behind a snapshot: as many as one snapshot's
// bytes of entries like the last ones, so that the log is bounded by bytes.
func (s *snapshots) trail() {
	bytes, entries := s.machine.LogBytes.Load(), s.machine.LogEntries.Load()
	if entries == 0 {
		return
	}
	c := s.raft.ReloadableConfig()
	c.TrailingLogs = uint64(min(max(s.options.SnapshotBytes*entries/max(bytes, 1), minTrailing), maxTrailing))
	if err := s.raft.ReloadConfig(c); err != nil {
		s.log.Warn("the length of the log could not be set", "error", err)
	}
}

// now takes a snapshot now.
func (s *snapshots) now() error {
	done := make(chan error, 1)
	select {
	case s.asked <- done:
		return <-done
	case <-s.stop:
		return failure.ErrUnavailable
	}
}

// last returns when the last snapshot was taken; the zero time: never.
func (s *snapshots) last() time.Time {
	ns := s.lastSave.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
