package chaos

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// stage is a cluster of three nodes, each with a disk of its own, under constant load from clients.
type stage struct {
	cluster *Cluster
	probe   *Prober
	disks   []*LoopDisk
	exits   atomic.Int64 // how many nodes ended by themselves
	at      int          // the leader's index, which next sets
	leader  *Node
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{}
	cfg := config(t, 3, 0)
	cfg.OnExit = func(n *Node, err error) { t.Errorf("%s %v: %v\n%s", n.ID, ErrExited, err, n.LogTail()) }
	var err error
	s.cluster, err = NewCluster(cfg)
	if s.cluster != nil {
		t.Cleanup(func() { s.close() })
	}
	require.NoError(t, err)
	for _, n := range s.cluster.Nodes {
		disk, err := MountLoopDisk(n.Dir)
		require.NoError(t, err)
		s.disks = append(s.disks, disk)
	}
	require.NoError(t, s.cluster.StartAll())
	_, err = s.cluster.Leader(t.Context(), leaderTimeout)
	require.NoError(t, err)
	s.probe = Probe(s.cluster.Addrs())
	return s
}

func (s *stage) close() {
	if s.probe != nil {
		s.probe.Stop()
	}
	for _, d := range s.disks {
		_ = d.Thaw() // fails if the disk is not frozen
		_ = d.Slow(0)
	}
	s.cluster.Close()
	for _, d := range s.disks {
		d.Unmount()
	}
}

// next waits until the cluster is healthy, and selects the leader as the node to affect.
func (s *stage) next(t *testing.T) {
	t.Helper()
	for _, n := range s.cluster.Nodes {
		require.NoError(t, n.AwaitReady(t.Context()))
	}
	require.NoError(t, sleep(t.Context(), settleTime))
	var err error
	s.at, err = s.cluster.Leader(t.Context(), leaderTimeout)
	require.NoError(t, err)
	s.leader = s.cluster.Nodes[s.at]
}

// revive restarts the affected node if it has ended, and waits until it is ready.
func (s *stage) revive(t *testing.T) {
	t.Helper()
	require.NoError(t, sleep(t.Context(), settleTime))
	if !s.leader.Process().Running() {
		s.exits.Add(1)
		require.NoError(t, s.leader.Start())
	}
	require.NoError(t, s.leader.AwaitReady(t.Context()))
}

func (s *stage) freeze(t *testing.T) {
	require.NoError(t, s.disks[s.at].Freeze())
	require.NoError(t, sleep(t.Context(), frozenFor))
	require.NoError(t, s.disks[s.at].Thaw())
	s.revive(t)
}

func (s *stage) slow(t *testing.T) {
	require.NoError(t, s.disks[s.at].Slow(slowIOPS))
	require.NoError(t, sleep(t.Context(), slowFor))
	require.NoError(t, s.disks[s.at].Slow(0))
	s.revive(t)
}

func (s *stage) pauseLeader(t *testing.T) {
	p := s.leader.Process()
	p.Pause()
	require.NoError(t, sleep(t.Context(), pausedFor))
	p.Resume()
	s.revive(t)
}

func (s *stage) killLeader(t *testing.T) {
	s.leader.Process().Kill()
	require.NoError(t, sleep(t.Context(), settleTime))
	require.NoError(t, s.leader.Start())
	s.revive(t)
}

func (s *stage) losePower(t *testing.T) {
	s.cluster.KillAll()
	for _, d := range s.disks {
		require.NoError(t, d.LosePower())
	}
	require.NoError(t, s.cluster.StartAll())
	s.revive(t)
}
