package raftstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/wire"
)

// awaitEvents waits until a node has events up to a cursor.
func awaitEvents(t *testing.T, n *raftstore.Node, last uint64) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, at, _ := n.Events(0, 0, 0)
		return at.Last >= last
	}, patience, time.Millisecond)
}

// TestEndsAreToldExactlyOnce checks that every hold that ends by itself writes one event, and that the events of a hold
// add up to its true cost, through commits around the end, changes of the leader, snapshots and restarts between the
// end and its event. The nodes have different numbers of shards, and their logs stay equal.
func TestEndsAreToldExactlyOnce(t *testing.T) {
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.TestClock, o.Table.Shards = true, 1<<(3*i)
	})
	leader, _ := c.leader()
	c.decideOn(leader, notifying("p", 1<<40, ""))
	rnd := rand.New(rand.NewPCG(7, 7))
	var reader eventReader
	cost, ended := map[string]int64{}, map[string]bool{}
	for round := range 12 {
		var ops []engine.Op
		var ids []string
		for i := range 200 {
			id := fmt.Sprintf("h%d-%d", round, i)
			op := reserve(id, 1+rnd.Int64N(100), time.Second, "p", fmt.Sprintf("key%d", rnd.IntN(300)))
			if op.Keep = i%3 == 0; op.Keep {
				cost[id] = op.Cost
			}
			ops, ids = append(ops, op), append(ids, id)
		}
		c.decideOn(c.nodes[round%3], ops...)
		for _, id := range ids[:50] {
			cost[id] = rnd.Int64N(150)
			c.decideOn(c.nodes[(round+1)%3], commit(id, cost[id]))
		}
		leader, at := c.leader()
		c.advanceTo(time.Duration(leader.Now().NowNs) + time.Second + 50*time.Millisecond)
		for _, id := range ids[50:] {
			ended[id] = true
		}
		switch round % 4 { // the ends may be told already, or are told later
		case 1:
			c.moveTo((at + 1) % 3)
		case 2:
			require.NoError(t, leader.Snapshot())
			c.stop(at)
			c.restart(at)
		case 3:
			require.NoError(t, c.nodes[(at+1)%3].Snapshot())
			c.stop((at + 1) % 3)
			c.restart((at + 1) % 3)
		}
		for _, id := range ids[50:70] {
			cost[id] = rnd.Int64N(150)
			require.EqualValues(t, 1, c.decideOn(c.nodes[round%3], commit(id, cost[id]))[0].Allowed)
		}
		awaitEvents(t, c.nodes[round%3], uint64((round+1)*220))
		reader.read(t, c.nodes[(round+1)%3])
	}
	c.agree()
	sums, expired := map[string]int64{}, map[string]int{}
	for _, e := range reader.got {
		if sums[e.ID] += e.Amount; e.Kind == engine.EventExpired {
			expired[e.ID]++
		}
	}
	for id := range sums {
		require.Equal(t, cost[id], sums[id], id)
		require.Equal(t, ended[id], expired[id] == 1, id)
	}
	require.Len(t, sums, 12*200)
	require.Len(t, expired, 12*150)
}

// TestEndsAreProposedOnce checks that the leader writes one operation to the log for each end, and none when there is
// nothing to tell. No policy has RECORD below the form of the log that has these operations, and nothing is told then.
func TestEndsAreProposedOnce(t *testing.T) {
	for _, format := range []byte{wire.Growing - 1, wire.Version} {
		c := newCluster(t, 1, func(_ int, o *raftstore.Options) { o.TestClock, o.Format = true, format })
		leader, _ := c.leader()
		terms := setPolicy("p", 1000)
		if format >= wire.Growing {
			terms.Policy.Terms.Record = true
		}
		c.decideOn(leader, terms)
		var ops []engine.Op
		for i := range 100 {
			ops = append(ops, reserve(fmt.Sprint("h", i), 1, time.Second, "p", "k"))
		}
		c.decideOn(leader, ops...)
		require.True(t, leader.Advance(2*time.Second))
		want := int64(1 + 100)
		if format >= wire.Growing {
			awaitEvents(t, leader, 100)
			want += 100
		}
		applied, _ := leader.Progress()
		require.Eventually(t, func() bool { // ticks of the clock: the leader has looked for ends meanwhile
			now, _ := leader.Progress()
			return now >= applied+3
		}, patience, 10*time.Millisecond)
		require.Equal(t, want, leader.Consensus().EntryOps)
		require.Equal(t, format, leader.Written())
	}
}
