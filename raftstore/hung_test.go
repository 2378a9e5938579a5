package raftstore_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// hangingLog is a log whose appends wait while its disk hangs.
type hangingLog struct {
	*raft.InmemStore
	mu    sync.Mutex
	at    []byte        // the disk hangs at an entry with this text; nil: at none
	hangs chan struct{} // closed when the disk hangs
	works chan struct{} // closed when the disk works again; nil while the disk works
}

// hangAt makes the disk hang when it shall write an entry with a text.
func (h *hangingLog) hangAt(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = []byte(text)
}

func (h *hangingLog) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.works != nil {
		close(h.works)
		h.works = nil
	}
}

func (h *hangingLog) StoreLogs(ls []*raft.Log) error {
	h.mu.Lock()
	if h.at != nil && slices.ContainsFunc(ls, func(l *raft.Log) bool { return bytes.Contains(l.Data, h.at) }) {
		h.at, h.works = nil, make(chan struct{})
		close(h.hangs)
	}
	works := h.works
	h.mu.Unlock()
	if works != nil {
		<-works
	}
	return h.InmemStore.StoreLogs(ls)
}

func (h *hangingLog) StoreLog(l *raft.Log) error { return h.StoreLogs([]*raft.Log{l}) }

// hangLeader starts three nodes. The leader's disk hangs when it shall write an entry with a text. hangLeader returns
// the index of the leader. Decisions may take an hour, so no time limit ends them.
func hangLeader(t *testing.T, text string) (c *cluster, at int, logs [3]*hangingLog) {
	c = newCluster(t, 3, func(i int, o *raftstore.Options) {
		logs[i] = &hangingLog{InmemStore: raft.NewInmemStore(), hangs: make(chan struct{})}
		o.Log, o.MaxDecisionAge = append(o.Log, logs[i]), time.Hour
	})
	_, at = c.leader()
	for _, n := range c.nodes {
		c.take(n, "before", 100)
	}
	logs[at].hangAt(text)
	t.Cleanup(logs[at].release)
	return c, at, logs
}

// awaitOther waits until a node other than at leads.
func (c *cluster) awaitOther(at int) {
	c.t.Helper()
	other := c.nodes[(at+1)%3]
	require.Eventually(c.t, func() bool {
		leader := other.Topology().Leader
		return len(c.fatal) > 0 || leader != "" && leader != c.opts[at].NodeID
	}, patience, 10*time.Millisecond, "no other node leads")
	require.Empty(c.t, c.fatal, "the node with the hung disk ended before another one led")
}

// TestALeaderWithAHungDiskIsReplaced checks that the followers of a leader with a hung disk elect another leader.
func TestALeaderWithAHungDiskIsReplaced(t *testing.T) {
	c, at, logs := hangLeader(t, "")
	go c.nodes[at].Confirm() // makes the leader write something
	c.awaitOther(at)
	require.EqualValues(t, 1, c.take(c.nodes[(at+1)%3], "after", 1).Allowed)
	logs[at].release()
	c.agree()
	require.Zero(t, c.take(c.nodes[at], "after", 1).Allowed)
}

// TestCallsToAHungLeaderEndWhenAnotherLeads checks that calls which wait for a hung leader end with an unknown
// outcome when another node leads. Otherwise later calls would wait behind them.
func TestCallsToAHungLeaderEndWhenAnotherLeads(t *testing.T) {
	c, at, logs := hangLeader(t, "waits")
	other := c.nodes[(at+1)%3]
	answers := make(chan error)
	ops := []engine.Op{{Key: []byte("waits"), Cost: 1, Limit: engine.Limit{
		Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(24 * time.Hour)}, Max: 100,
	}}}
	go func() {
		for t.Context().Err() == nil {
			err := other.Decide(ops, make([]engine.Decision, 1))
			select {
			case <-logs[at].hangs:
				answers <- err
				return
			default: // the call has not reached the leader
			}
		}
	}()
	select {
	case <-logs[at].hangs:
	case <-time.After(patience):
		t.Fatal("the call must reach the leader")
	}
	c.awaitOther(at)
	select {
	case err := <-answers:
		require.True(t, errors.Is(err, limiter.ErrUnknownOutcome), "%v", err)
	case <-time.After(patience):
		t.Fatal("the call still waits")
	}
}
