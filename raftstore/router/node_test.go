package router_test

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
)

const patience = 30 * time.Second

// tier is a set of nodes with several groups each, on loopback and real disks.
type tier struct {
	t     *testing.T
	nodes []*router.Node
	opts  []raftstore.Options
	fatal chan error
	takes int // counts the calls of take
}

func newTier(t *testing.T, size, groups int, change ...func(*raftstore.Options)) *tier {
	c := &tier{t: t, fatal: make(chan error, 100)}
	var listeners []net.Listener
	join := freeport.Addrs(t, size) // which no outgoing connection takes while a node is down
	for _, addr := range join {
		listeners = append(listeners, listen(t, addr))
	}
	var out = slog.New(slog.DiscardHandler)
	if os.Getenv("WEIRTEST_LOG") != "" {
		out = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for i := range size {
		o := raftstore.Options{
			NodeID: fmt.Sprint("n", i), DataDir: t.TempDir(), RaftAddr: join[i], ClientAddr: fmt.Sprint("client", i),
			Join: join, Expect: size, Listener: listeners[i], Groups: groups,
			Heartbeat: 500 * time.Millisecond, Logger: out.With("node", i),
			OnFatal: func(err error) { c.fatal <- err; runtime.Goexit() },
		}
		for _, f := range change {
			f(&o)
		}
		n, err := router.Open(o)
		require.NoError(t, err)
		c.nodes, c.opts = append(c.nodes, n), append(c.opts, o)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	return c
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return l
}

func (c *tier) stop(i int) {
	if c.nodes[i] != nil {
		c.nodes[i].Close()
		c.nodes[i] = nil
	}
}

func (c *tier) restart(i int) {
	o := c.opts[i]
	o.Listener = listen(c.t, o.RaftAddr)
	var err error
	c.nodes[i], err = router.Open(o)
	require.NoError(c.t, err)
}

// led waits until every group has a leader, as a node sees it.
func (c *tier) led(n *router.Node) {
	c.t.Helper()
	var missing atomic.Value // what the last look found
	missing.Store("nothing was looked at")
	look := func() bool {
		for i, g := range n.Topology().Groups {
			if g.Leader == "" {
				missing.Store(fmt.Sprintf("group %d has no leader: %+v", i, g))
				return false
			}
		}
		missing.Store("a read does not return")
		if err := n.ReadIndex(); err != nil {
			missing.Store(fmt.Sprintf("a read fails: %v", err))
			return false
		}
		return true
	}
	if !assert.Eventually(c.t, look, patience, 10*time.Millisecond) {
		require.FailNow(c.t, "the groups are not led", "%v; ended groups: %d, fatal: %d", missing.Load(),
			n.Topology().Ended(), len(c.fatal))
	}
}

func quota(key string, most int64) engine.Op {
	return engine.Op{Key: []byte(key), Cost: 1,
		Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}}
}

// take takes one unit of each key on a node. An operation counts once, because its repetitions have the same ID.
func (c *tier) take(n *router.Node, keys []string) (allowed int64) {
	c.t.Helper()
	c.takes++
	var ops []engine.Op
	for i, key := range keys {
		op := quota(key, 1_000_000)
		op.ID = fmt.Appendf(nil, "take %d %d", c.takes, i)
		ops = append(ops, op)
	}
	return c.taken(n, ops)
}

// taken decides operations on a node. It repeats those that were not applied, or whose outcome is unknown.
func (c *tier) taken(n *router.Node, ops []engine.Op) (allowed int64) {
	c.t.Helper()
	left, last := ops, "nothing was decided"
	decided := assert.Eventually(c.t, func() bool {
		out := make([]engine.Decision, len(left))
		if err := n.Decide(left, out); err != nil {
			last = err.Error()
			return false
		}
		var again []engine.Op
		for i, d := range out {
			switch outcome := limiter.OutcomeOfStatus(d.Status); {
			case d.Status == engine.OK:
				allowed += d.Allowed
			case outcome == limiter.ErrTryAgain || outcome == limiter.ErrClusterDown ||
				outcome == limiter.ErrUnknownOutcome:
				again, last = append(again, left[i]), outcome.Error()
			default:
				assert.Failf(c.t, "a decision failed", "%s: status %d", left[i].Key, d.Status)
			}
		}
		left = again
		return len(left) == 0
	}, patience, 10*time.Millisecond)
	require.True(c.t, decided, last)
	return allowed
}

// read reads all groups at a node. It repeats a read that fails, because a group may elect its leader.
func (c *tier) read(n *router.Node, look func(limiter.State)) {
	c.t.Helper()
	var failed error
	done := assert.Eventually(c.t, func() bool {
		if failed = n.ReadIndex(); failed == nil {
			look(n.Reading(func(err error) { failed = err }))
		}
		return failed == nil
	}, patience, 10*time.Millisecond)
	require.True(c.t, done, "%v", failed)
}

// used returns the units of each key that a node reads.
func (c *tier) used(n *router.Node, keys []string) []int64 {
	c.t.Helper()
	units := make([]int64, len(keys))
	c.read(n, func(state limiter.State) {
		for i, key := range keys {
			info, _ := state.Inspect([]byte(key))
			units[i] = info.Used
		}
	})
	return units
}

// counts checks the units of keys that a node reads.
func (c *tier) counts(n *router.Node, keys []string, want int64) {
	c.t.Helper()
	for i, units := range c.used(n, keys) {
		require.Equal(c.t, want, units, keys[i])
	}
}

// added adds a node. It accepts that the node is a member, because an attempt without an answer may have added it.
func (c *tier) added(add func() error) {
	c.t.Helper()
	c.changed(add, "is a member already")
}

// removed removes a node. It accepts that the node is no member any more, because an attempt without an answer may have
// removed it.
func (c *tier) removed(remove func() error) {
	c.t.Helper()
	c.changed(remove, `no node "`)
}

// changed repeats a change until it succeeds, or fails with the error of a change that was made before.
func (c *tier) changed(change func() error, made string) {
	c.t.Helper()
	var err error
	done := assert.Eventually(c.t, func() bool {
		err = change()
		return err == nil || strings.Contains(err.Error(), made)
	}, patience, 10*time.Millisecond)
	require.True(c.t, done, "%v", err)
}

// TestATierOfGroups checks three nodes that host four groups. All groups decide a pipeline that any node receives. A
// restart of a node loses nothing, and every node ends with the same state.
func TestATierOfGroups(t *testing.T) {
	const size, groups = 3, 4
	c := newTier(t, size, groups)
	for _, n := range c.nodes {
		c.led(n)
	}
	var keys []string
	in := map[int]int{}
	for i := range 64 {
		keys = append(keys, fmt.Sprint("key", i))
		in[hashslot.Group(hashslot.Of([]byte(keys[i])), groups)]++
	}
	require.Len(t, in, groups)
	policy := engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{
		Do: engine.PolicySet, Own: true,
		Terms: &engine.Policy{Limits: []engine.PolicyLimit{{Limit: quota("", 5).Limit}}}}}
	decided(t, c.nodes[1], policy)

	taken := int64(0)
	for range 3 {
		for _, n := range c.nodes {
			taken += c.take(n, keys)
		}
	}
	require.EqualValues(t, 3*size*len(keys), taken)

	c.stop(0)
	c.led(c.nodes[1])
	taken += c.take(c.nodes[1], keys)
	c.restart(0)
	c.led(c.nodes[0])
	taken += c.take(c.nodes[0], keys)
	for _, n := range c.nodes {
		c.led(n)
		used := int64(0)
		for _, key := range keys {
			info, found := n.Inspect([]byte(key))
			require.True(t, found)
			used += info.Used
		}
		require.Equal(t, taken, used)
		require.EqualValues(t, len(keys), n.Len(0))
		require.NotNil(t, n.Policies().Get([]byte("p")))
	}
	require.Eventually(t, func() bool {
		for group := range groups {
			at, hash := c.nodes[0].Digest(group)
			for _, n := range c.nodes[1:] {
				if i, h := n.Digest(group); i != at || h != hash {
					return false
				}
			}
		}
		return true
	}, patience, 50*time.Millisecond)
	require.Empty(t, c.fatal)
	for i := range groups {
		got, ok, err := raftstore.FoundingOf(&raftstore.Options{DataDir: raftstore.GroupDir(c.opts[0].DataDir, i)})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, raftstore.Founding{Groups: groups}, got)
	}
}
