package raftstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
)

// written records when each write to a key was acknowledged, in order.
type written struct {
	mu sync.Mutex
	at []time.Time
}

func (w *written) add(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = append(w.at, at)
}

// requireAge reads a key as READONLY does. The read must contain every write that was acknowledged before the
// reported age.
func (w *written) requireAge(t *testing.T, n *raftstore.Node, key string) {
	t.Helper()
	asked := time.Now()
	age := n.StaleFor()
	info, _ := n.Inspect([]byte(key))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, at := range w.at {
		if at.Before(asked.Add(-age)) {
			require.GreaterOrEqual(t, info.Used, int64(i+1),
				"the node reports an age of %v, but lacks a write acknowledged %v ago", age, asked.Sub(at))
		}
	}
}

// TestARestartedNodeSaysHowOldItsStateIs checks that after a restart, and while it is unreachable, a node never
// reports an age below the true one.
func TestARestartedNodeSaysHowOldItsStateIs(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	var w written
	write := func() {
		c.take(leader, "key", 1000)
		w.add(time.Now())
	}
	behind := (at + 1) % 3
	write()
	c.requireShown(c.nodes[behind], "key", 1)
	c.stop(behind)
	missed := time.Now()
	for range 30 {
		write()
	}
	c.restart(behind)
	node := c.nodes[behind]
	since := time.Since(missed)
	age := node.StaleFor()
	if info, _ := node.Inspect([]byte("key")); info.Used < 31 {
		require.Greater(t, age, since-time.Millisecond, "the age must include the whole downtime")
	}
	caughtUp := func() bool {
		w.requireAge(t, node, "key")
		info, _ := node.Inspect([]byte("key"))
		return info.Used == 31 && node.StaleFor() < time.Since(missed)
	}
	require.Eventually(t, caughtUp, patience, time.Millisecond)

	c.stop(at)
	c.stop((at + 2) % 3)
	alone := time.Now()
	require.Eventually(t, func() bool { return node.Topology().Leader == "" }, patience, 10*time.Millisecond)
	since = time.Since(alone)
	require.GreaterOrEqual(t, node.StaleFor(), since-time.Millisecond)
}

// TestAStaleReadIsAsOldAsItSays checks reads of all nodes during writes, while followers restart and leadership
// moves. No read may be older than it says.
func TestAStaleReadIsAsOldAsItSays(t *testing.T) {
	c := newCluster(t, 3, nil)
	for round := range 6 {
		leader, at := c.leader()
		key := fmt.Sprint("key", round)
		var w written
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				c.take(leader, key, 1_000_000)
				w.add(time.Now())
			}
		}()
		victim := (at + 1) % 3
		if round%2 == 0 {
			c.stop(victim)
			c.restart(victim)
		}
		for range 300 {
			for _, n := range c.nodes {
				w.requireAge(t, n, key)
			}
			time.Sleep(time.Millisecond)
		}
		close(stop)
		<-done
		c.moveTo(victim)
	}
}
