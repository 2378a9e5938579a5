package sim

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
)

// TestADeposedLeaderDeniesNothing checks that a deposed leader neither denies nor answers a read from its old state.
// The voter's answer to a heartbeat is still on its way to the old leader. Meanwhile the successor is elected and
// resets a spent quota. The old leader has not heard of the election, and the old answer must not confirm its
// leadership.
func TestADeposedLeaderDeniesNothing(t *testing.T) {
	t.Run("asks when it has denied", func(t *testing.T) { deposed(t, 2) })
	t.Run("asks ahead", func(t *testing.T) { deposed(t, 20) })
}

// laterTerm is the name of the guard that the scenario exercises.
const laterTerm = "quorum round finds a later term"

// deposed runs the scenario after this many denials in a row.
func deposed(t *testing.T, denials int) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(Config{Nodes: 3, Logger: slog.New(slog.DiscardHandler)}, NewReport())
		s.start()
		defer s.end()
		require.True(t, s.answers())
		leader, successor, voter := s.ranks()

		spent := engine.Op{Key: []byte("key"), Cost: 1,
			Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1}}
		for range 1 + denials { // the second denial is answered without the log
			_, err := leader.ask([]engine.Op{spent}, false)
			require.NoError(t, err)
		}

		s.net.setCut(voter.host.addr, leader.host.addr, true)
		time.Sleep(heartbeat / 4) // every exchange with the voter now waits for its answer

		s.net.setCut(successor.host.addr, leader.host.addr, true) // so that it asks no vote of it
		handover, term := make(chan error, 1), leader.node.Topology().Term
		go func() { handover <- leader.node.TransferLeadership(successor.host.id) }()
		for successor.node.Topology().Term == term {
			time.Sleep(usualDelay / 4)
		}
		require.Eventually(t, func() bool {
			return successor.node.Topology().Leader == successor.host.id
		}, heartbeat/4, time.Millisecond)
		_, err := successor.ask([]engine.Op{{Code: engine.OpReset, Key: spent.Key, Cost: 1}}, false)
		require.NoError(t, err)

		require.Equal(t, leader.host.id, leader.node.Topology().Leader,
			"the old leader has not heard of its successor")
		denial := make(chan error, 1)
		go func() {
			_, err := leader.ask([]engine.Op{spent}, false)
			denial <- err
		}()
		read := make(chan error, 1)
		go func() { read <- leader.node.ReadIndex() }()
		synctest.Wait()
		require.Empty(t, read, "the read must wait, because no node has confirmed the old leader")
		hits := guards.Counts()[laterTerm]
		s.net.setCut(voter.host.addr, leader.host.addr, false)
		require.ErrorIs(t, <-denial, limiter.ErrTryAgain)
		require.Greater(t, guards.Counts()[laterTerm], hits, "the voter's answer must tell its later term")
		s.net.heal()
		if <-read == nil { // the read was forwarded to the successor
			_, used := leader.node.Inspect(spent.Key)
			require.False(t, used, "the read must see the reset by the successor")
		}
		<-handover
	})
}

// ranks returns the leader, the node that will succeed it, and the node that only votes.
func (s *Simulation) ranks() (leader, successor, voter *process) {
	for _, h := range s.machines() {
		switch p := h.running(); {
		case p.node.Topology().Leader == h.id:
			leader = p
		case successor == nil:
			successor = p
		default:
			voter = p
		}
	}
	return leader, successor, voter
}
