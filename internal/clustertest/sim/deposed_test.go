package sim

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

// TestADeposedLeaderDeniesNothing: while a heartbeat's answer is on its way to the
// leader, its successor is elected and gives a spent quota back. The leader has not
// heard of it when it is asked, and the old answer is all that it gets: it must not
// take that for a confirmation and deny, or answer a read, from the state it has.
func TestADeposedLeaderDeniesNothing(t *testing.T) {
	t.Run("asks when it has denied", func(t *testing.T) { deposed(t, 2) })
	t.Run("asks ahead", func(t *testing.T) { deposed(t, 20) })
}

// deposed runs that after so many denials in a row.
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
		time.Sleep(heartbeat / 4) // every exchange with the voter waits for its answer
		handover, term := make(chan error, 1), leader.node.Topology().Term
		go func() { handover <- leader.node.TransferLeadership(successor.host.id) }()
		for successor.node.Topology().Term == term {
			time.Sleep(usualDelay / 4)
		}
		s.net.setCut(successor.host.addr, leader.host.addr, true) // before it can ask for a vote
		require.Eventually(t, func() bool {
			return successor.node.Topology().Leader == successor.host.id
		}, heartbeat/4, time.Millisecond)
		_, err := successor.ask([]engine.Op{{Code: engine.OpReset, Key: spent.Key, Cost: 1}}, false)
		require.NoError(t, err)

		require.Equal(t, leader.host.id, leader.node.Topology().Leader, "it has not heard of its successor")
		denial := make(chan error, 1)
		go func() {
			_, err := leader.ask([]engine.Op{spent}, false)
			denial <- err
		}()
		read := make(chan error, 1)
		go func() { read <- leader.node.ReadIndex() }()
		synctest.Wait()
		require.Empty(t, read, "nobody has confirmed that it leads")
		s.net.setCut(voter.host.addr, leader.host.addr, false)
		require.ErrorIs(t, <-denial, raftstore.ErrTryAgain)
		s.net.heal()
		if <-read == nil { // it has asked its successor
			_, used := leader.node.Inspect(spent.Key)
			require.False(t, used, "what the successor gave back is missing")
		}
		<-handover
	})
}

// ranks returns the leader, the node that is to succeed it and the one that votes.
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
