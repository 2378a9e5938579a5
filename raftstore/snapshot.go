package raftstore

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// snapshot takes a snapshot whenever the log behind the last one has become long
// enough, or someone asks for one, until the node closes.
func (n *Node) snapshot() {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	due := func() int64 { return n.machine.committed.Load().turnOf(n.options.NodeID, n.options.SnapshotBytes) }
	for {
		select {
		case <-tick.C:
			if n.machine.logBytes.Load() >= due() && n.take() == nil {
				due = func() int64 { return n.options.SnapshotBytes }
			}
		case asked := <-n.snapshots:
			asked <- n.take()
		case <-n.stop:
			return
		}
	}
}

// turnOf is after how many bytes of log a node takes its first snapshot. All nodes count
// the same log: without turns they would all write at the same moments, when the
// majority that a decision waits for has the least time.
func (m *membership) turnOf(id string, bytes int64) int64 {
	if m == nil {
		return bytes
	}
	turn := 1
	for _, other := range m.servers {
		if string(other.ID) < id {
			turn++
		}
	}
	return min(bytes*int64(turn)/int64(max(len(m.servers), 1)), bytes)
}

// take makes a snapshot: first what changed, while entries go on being applied,
// then the rest at a standstill.
func (n *Node) take() error {
	start := time.Now()
	n.trail()
	bytes, entries := n.machine.logBytes.Load(), n.machine.logEntries.Load()
	err := n.machine.precopy(calmSnapshots * n.options.SnapshotBytes)
	copied := time.Since(start)
	if err == nil {
		err = n.await(n.raft.Snapshot())
	}
	if errors.Is(err, errHurry) || errors.Is(err, raft.ErrRaftShutdown) {
		return ErrUnavailable
	}
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		n.log.Warn("no snapshot could be taken; the next attempt follows", "error", err)
		return err
	}
	n.machine.logBytes.Add(-bytes)
	n.machine.logEntries.Add(-entries)
	n.lastSave.Store(time.Now().UnixNano())
	n.counters.snapshots.Observe(time.Since(start), 1)
	n.log.Debug("snapshot taken", "took", time.Since(start), "precopy", copied, "standstill", time.Duration(n.machine.standstill.Load()), "entries", entries, "bytes", bytes)
	return nil
}

// trail sets how many entries stay behind a snapshot: as many as one snapshot's
// bytes of entries like the last ones, so that the log is bounded by bytes.
func (n *Node) trail() {
	bytes, entries := n.machine.logBytes.Load(), n.machine.logEntries.Load()
	if entries == 0 {
		return
	}
	c := n.raft.ReloadableConfig()
	c.TrailingLogs = uint64(min(max(n.options.SnapshotBytes*entries/max(bytes, 1), minTrailing), maxTrailing))
	if err := n.raft.ReloadConfig(c); err != nil {
		n.log.Warn("the length of the log could not be set", "error", err)
	}
}

// Snapshot takes a snapshot now.
func (n *Node) Snapshot() error {
	done := make(chan error, 1)
	select {
	case n.snapshots <- done:
		return <-done
	case <-n.stop:
		return ErrUnavailable
	}
}

// Save is Snapshot: with it on disk, a restart replays nothing. Every answer given
// so far is on the disks of a majority anyway.
func (n *Node) Save() error { return n.Snapshot() }

// LastSave is when the last snapshot was taken; the zero time: never.
func (n *Node) LastSave() time.Time {
	ns := n.lastSave.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
