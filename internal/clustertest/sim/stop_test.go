package sim

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/router"
	"github.com/weir-project/weir/raftstore/wire"
)

// leadsGroup returns a group on its leader.
func (s *Simulation) leadsGroup(t *testing.T, group int) (leader router.Group) {
	require.True(t, s.within(maxRecovery, func() bool {
		for _, p := range s.members() {
			one := p.group[group].(groupOn).node.Group(group)
			if one != nil && one.Topology().Leads() {
				leader = one
				return true
			}
		}
		return false
	}))
	return leader
}

// TestAnOrderlyStopKeepsTheDowntime checks that all groups get the downtime credited after an orderly stop of all
// nodes, one after the other. The nodes that start first and elect a leader are the last one that was stopped, which
// has the newest entries, and those that were stopped first.
func TestAnOrderlyStopKeepsTheDowntime(t *testing.T) {
	const pause, down = 10 * time.Second, time.Minute
	for _, c := range []Config{{Nodes: 3}, {Nodes: 5}, {Nodes: 3, Groups: 4}} {
		synctest.Test(t, func(t *testing.T) {
			c.Logger = slog.New(slog.DiscardHandler)
			s := newSimulation(c, NewReport())
			s.start()
			defer s.end()
			require.True(t, s.answers())
			for round := range c.Nodes { // each node is once the last
				time.Sleep(20 * time.Second) // leaders spread
				var before []int64
				began := time.Now()
				for group := range s.groups() {
					before = append(before, s.leadsGroup(t, group).Now().NowNs)
				}
				hosts := append(s.machines()[round:], s.machines()[:round]...)
				for _, h := range hosts {
					h.running().stop()
					h.clock.reboot()
					time.Sleep(pause)
				}
				time.Sleep(down)
				first := append(hosts[:c.Nodes/2:c.Nodes/2], hosts[c.Nodes-1])
				for _, h := range first {
					h.start()
				}
				time.Sleep(5 * time.Second) // they elect leaders
				for group := range s.groups() {
					given := time.Duration(s.leadsGroup(t, group).Now().NowNs - before[group])
					passed := time.Since(began)
					require.InDelta(t, passed, given, float64(2*time.Second), "group %d, round %d", group, round)
					require.LessOrEqual(t, given, passed+driftIn(passed), "group %d, round %d", group, round)
				}
				require.True(t, s.answers()) // starts the others
			}
		})
	}
}

// TestATermBeginsWithANote checks that the note of the wall clocks is the first entry of each term, although calls wait
// for the new leader. A stop of all nodes right after it would otherwise lose the downtime.
func TestATermBeginsWithANote(t *testing.T) {
	timed(t, 3, func(t *testing.T, s *Simulation) {
		const clients, transfers = 6, 20
		quota := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: plenty}
		var working sync.WaitGroup
		var done atomic.Bool
		for i := range clients {
			working.Go(func() {
				for !done.Load() {
					if p := s.machines()[i%3].running(); p != nil {
						_, _ = p.ask([]engine.Op{{Key: []byte("key"), Cost: 1, Limit: quota}}, false)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		begun := map[uint64]wire.Kind{} // by term: the first entry
		for range transfers {
			time.Sleep(200 * time.Millisecond)
			leader := s.handOver(s.leads(t))
			require.NotNil(t, leader)
			time.Sleep(50 * time.Millisecond)
			if term, kind, ok := leader.firstOfTerm(t); ok {
				begun[term] = kind
			}
		}
		done.Store(true)
		working.Wait()
		require.Greater(t, len(begun), transfers/2)
		for term, kind := range begun {
			require.Equal(t, wire.Tick, kind, "the first entry of term %d", term)
		}
	})
}

// firstOfTerm returns the term of the newest entry of a log, and the kind of the first entry of that term. It returns
// false if an image has replaced that entry.
func (p *process) firstOfTerm(t *testing.T) (term uint64, kind wire.Kind, ok bool) {
	index, err := p.logs[0].LastIndex()
	require.NoError(t, err)
	var entry raft.Log
	for ; p.logs[0].GetLog(index, &entry) == nil; index-- {
		if term > 0 && entry.Term != term {
			return term, kind, true
		}
		term = entry.Term
		if entry.Type == raft.LogCommand {
			h, _, err := wire.Split(entry.Data, wire.Version)
			require.NoError(t, err)
			kind = h.Kind
		}
	}
	return 0, 0, false
}
