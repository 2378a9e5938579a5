package raftstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/wire"
)

// eventReader reads the log of events at one node after the other.
type eventReader struct {
	after uint64
	got   []engine.Event
}

func (r *eventReader) read(t *testing.T, n *raftstore.Node) {
	require.Eventually(t, func() bool { return n.ReadIndex() == nil }, patience, time.Millisecond)
	for {
		list, at, _ := n.Events(0, r.after, 100)
		require.LessOrEqual(t, at.First, r.after+1, "the reader missed events")
		if len(list) == 0 {
			require.Equal(t, at.Last, r.after)
			return
		}
		for i := range list {
			r.after++
			require.Equal(t, r.after, list[i].Cursor)
		}
		r.got = append(r.got, list...)
	}
}

func notifying(name string, most int64, shares string) engine.Op {
	l := engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most},
		Notify: engine.Thresholds(shares)}
	return engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &engine.PolicyChange{Do: engine.PolicySet,
		Terms: &engine.Policy{Limits: []engine.PolicyLimit{l}, Record: true}}}
}

// TestThresholdsExactlyOnce checks that every threshold is reported once, with retries at other nodes, changes of the
// leader, snapshots and restarts, and that a reader that goes on at another node misses no event and reads none twice.
// The nodes have different numbers of shards, and their logs stay equal.
func TestThresholdsExactlyOnce(t *testing.T) {
	c := newCluster(t, 3, func(i int, o *raftstore.Options) { o.Table.Shards = 1 << (3 * i) })
	leader, at := c.leader()
	const shares = "\x0a\x19\x32\x3c\x50\x5a\x5f\x64"
	c.decideOn(leader, notifying("p", 1000, shares))
	rnd := rand.New(rand.NewPCG(5, 5))
	var reader eventReader
	holds := 0
	for round := range 60 {
		var ops []engine.Op
		for i := range 100 {
			op := check(1+rnd.Int64N(60), "p", fmt.Sprintf("key%d", rnd.IntN(300)))
			op.ID = fmt.Appendf(nil, "r%d-%d", round, i)
			ops = append(ops, op)
		}
		c.decideOn(c.nodes[round%3], ops...)
		c.decideOn(c.nodes[(round+1)%3], ops...) // a retry at another node
		for range 10 {
			id := fmt.Sprintf("h%d", holds)
			hold := reserve(id, 100, time.Hour, "p", fmt.Sprintf("key%d", rnd.IntN(300)))
			if c.decideOn(c.nodes[round%3], hold)[0].Allowed == 1 {
				require.EqualValues(t, 1, c.decideOn(c.nodes[(round+2)%3], commit(id, rnd.Int64N(150)))[0].Allowed)
				holds++
			}
		}
		reader.read(t, c.nodes[(round+1)%3])
		switch round % 20 {
		case 5:
			at = (at + 1) % 3
			c.moveTo(at)
		case 10:
			require.NoError(t, c.nodes[(at+1)%3].Snapshot())
			c.stop((at + 1) % 3)
			c.restart((at + 1) % 3)
		}
	}
	reader.read(t, c.nodes[0])
	c.agree()

	told, settled := map[string]int{}, 0
	for _, e := range reader.got {
		if e.Kind == engine.EventSettled {
			settled++
			continue
		}
		require.GreaterOrEqual(t, e.Used*100, e.Share*e.Limit)
		told[fmt.Sprintf("%s %d", e.Key, e.Share)]++
	}
	crossings := 0
	for i := range 300 {
		key := fmt.Sprintf("key%d", i)
		for _, share := range []byte(shares) {
			n := told[fmt.Sprintf("%s %d", key, share)]
			require.LessOrEqual(t, n, 1, "%s %d%%", key, share)
			info, _ := c.nodes[0].Inspect(engine.LimiterName("p", 0, []byte(key)))
			if info.Used*100 >= int64(share)*1000 {
				require.Equal(t, 1, n, "%s %d%% at %d", key, share, info.Used)
			}
			crossings += n
		}
	}
	require.Equal(t, holds, settled)
	require.Greater(t, crossings, 500)
	t.Logf("%d crossings, %d holds", crossings, holds)
}

// TestTheBoundOfEventsIsTheClusters checks that nodes with other flags keep the events of the cluster's bound.
func TestTheBoundOfEventsIsTheClusters(t *testing.T) {
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.Table.EventsBytes, o.Table.Shards = engine.MinEventsBytes, 1<<i
	})
	leader, _ := c.leader()
	require.Eventually(t, func() bool { return leader.EventsBound() == engine.MinEventsBytes }, patience,
		time.Millisecond)
	c.decideOn(leader, notifying("p", 1, "\x64"))
	for round := range 20 {
		var ops []engine.Op
		for i := range 100 {
			ops = append(ops, check(1, "p", fmt.Sprintf("key%d-%d", round, i)))
		}
		c.decideOn(leader, ops...)
	}
	c.agree()
	for _, n := range c.nodes {
		_, at, _ := n.Events(0, 0, 0)
		require.EqualValues(t, 2000, at.Last)
		require.Positive(t, at.Dropped())
		require.LessOrEqual(t, at.Bytes, int64(engine.MinEventsBytes))
	}
}

// TestNotifyNeedsTheNewForm checks that no policy with events comes into force while a member cannot read it.
func TestNotifyNeedsTheNewForm(t *testing.T) {
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		if o.Table.EventsBytes = engine.MinEventsBytes; i == 0 {
			o.Format = wire.Growing - 1
		}
	})
	c.leader()
	c.moveTo(1)
	recorded := setPolicy("q", 5)
	recorded.Policy.Terms.Record = true
	for _, n := range c.nodes {
		out := make([]engine.Decision, 1)
		for _, op := range []engine.Op{notifying("p", 100, "\x64"), recorded} {
			require.Eventually(t, func() bool {
				err := n.Decide([]engine.Op{op}, out)
				require.Error(t, err)
				return errors.Is(err, limiter.ErrOldMember)
			}, patience, 10*time.Millisecond)
		}
		require.Zero(t, n.Policies().Len())
		require.EqualValues(t, engine.DefaultEventsBytes, n.EventsBound())
	}
	c.agree()
	c.stop(0)
	c.opts[0].Format = wire.Version
	c.restart(0)
	leader, _ := c.leader()
	require.Eventually(t, func() bool { return leader.EventsBound() == engine.MinEventsBytes }, patience,
		time.Millisecond)
	c.decideOn(leader, notifying("p", 100, "\x64"), check(100, "p", "k"))
	c.agree()
	for _, n := range c.nodes {
		list, _, _ := n.Events(0, 0, 10)
		require.Len(t, list, 1)
	}
}
