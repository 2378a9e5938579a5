package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
)

var failoverGroups = flag.Int("chaos.failover.groups", 0,
	"groups of the cluster of TestFailoverOfGroups, a power of two; 0 skips it")

const (
	promisedGroupFailover = 2 * time.Second
	promisedUndisturbed   = 50 * time.Millisecond
	// spreadTimeout is how long the leaders may take to spread evenly after a restart.
	spreadTimeout = time.Minute
	// watchFor is how long the keys are asked for after the last group has a leader again.
	watchFor = time.Second
	// askEvery is the time from the end of one request for a group to the next.
	askEvery = 20 * time.Millisecond
)

// groupLeader is one range of CLUSTER SLOTS: a slot of it, and the address of the node that leads it.
type groupLeader struct {
	slot uint16
	addr string
}

// leadersOf asks a node for the leaders of all groups.
func leadersOf(n *Node) ([]groupLeader, error) {
	reply, err := n.Ask(askTimeout, "CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	ranges, _ := reply.([]any)
	var all []groupLeader
	for _, r := range ranges {
		items, _ := r.([]any)
		if len(items) < 3 {
			return nil, fmt.Errorf("a range of CLUSTER SLOTS without a primary: %v", r)
		}
		primary := items[2].([]any)
		port := strconv.FormatInt(primary[1].(int64), 10)
		all = append(all, groupLeader{uint16(items[0].(int64)), net.JoinHostPort(primary[0].(string), port)})
	}
	return all, nil
}

// awaitSpread waits until every node leads a third of the groups, rounded up or down.
func awaitSpread(t *testing.T, c *Cluster, groups int) []groupLeader {
	t.Helper()
	var all []groupLeader
	err := poll(t.Context(), spreadTimeout, func() bool {
		var err error
		all, err = leadersOf(c.Nodes[0])
		led := map[string]int{}
		for _, g := range all {
			led[g.addr]++
		}
		for _, n := range c.Nodes {
			if led[n.Addr] < groups/len(c.Nodes) {
				return false
			}
		}
		return err == nil && len(all) == groups
	})
	require.NoError(t, err, "the leaders do not spread: %v", all)
	return all
}

// groupWatch asks for a key of one group, at nodes that stay up.
type groupWatch struct {
	ledAgain time.Duration   // from the kill to the first answer of a request that was sent after it
	took     []time.Duration // of the answered requests after the kill
	errors   int             // requests after the kill without an answer
}

func (w *groupWatch) run(ctx context.Context, c *Client, slot uint16, killed *time.Time, ledAgain func()) {
	defer c.Close()
	key := "{" + hashslot.Tag(slot) + "}failover"
	for c.pause(ctx, askEvery) {
		begun := time.Now()
		a := c.Call("RL.TOKENBUCKET", key, probeRate, probeRate)
		if begun.Before(*killed) {
			continue
		}
		if a.Outcome != Answered {
			w.errors++
			continue
		}
		took := time.Since(begun)
		w.took = append(w.took, took)
		if w.ledAgain == 0 {
			w.ledAgain = time.Since(*killed)
			ledAgain()
		}
	}
}

// failOver kills a node, and asks for a key of each group until all are led again.
func failOver(t *testing.T, c *Cluster, victim *Node, all []groupLeader) (lost, kept []*groupWatch) {
	var addrs []string
	for _, n := range c.Nodes {
		if n != victim {
			addrs = append(addrs, n.Addr)
		}
	}
	start := time.Now()
	killed := start.Add(time.Second) // earlier requests only open the connections
	ctx, stop := context.WithCancel(t.Context())
	var tasks, leaderless sync.WaitGroup
	var tally Tally
	for i, g := range all {
		w := &groupWatch{}
		if g.addr == victim.Addr {
			lost = append(lost, w)
		} else {
			kept = append(kept, w)
		}
		client := &Client{ID: i, addrs: addrs, at: i % len(addrs), start: start, timeout: patientTimeout, tally: &tally,
			rng: rand.New(rand.NewPCG(uint64(i), 1))}
		leaderless.Add(1)
		tasks.Go(func() { w.run(ctx, client, g.slot, &killed, leaderless.Done) })
	}
	time.Sleep(time.Until(killed))
	victim.Process().Kill()
	leaderless.Wait()
	require.NoError(t, sleep(t.Context(), watchFor))
	stop()
	tasks.Wait()
	return lost, kept
}

// startedGroups is a running cluster of three nodes with groups.
func startedGroups(t *testing.T, groups int, args ...string) *Cluster {
	t.Helper()
	cfg := config(t, 3, 0)
	cfg.Args = append(append(cfg.Args, "--groups", strconv.Itoa(groups)), args...)
	cfg.OnExit = func(n *Node, err error) { t.Errorf("%s %v: %v\n%s", n.ID, ErrExited, err, n.LogTail()) }
	cluster, err := NewCluster(cfg)
	if cluster != nil {
		t.Cleanup(cluster.Close)
	}
	require.NoError(t, err)
	require.NoError(t, cluster.StartAll())
	for _, n := range cluster.Nodes {
		require.NoError(t, n.AwaitUp(t.Context()), "%s", n.LogTail())
	}
	return cluster
}

// lastLedAgain logs when the groups of a node that died were led again, and returns the time of the last one.
func lastLedAgain(t *testing.T, victim *Node, lost []*groupWatch) time.Duration {
	t.Helper()
	require.NotEmpty(t, lost)
	var again []time.Duration
	for _, w := range lost {
		again = append(again, w.ledAgain)
	}
	slices.Sort(again)
	last := again[len(again)-1]
	t.Logf("%s led %d groups: first led again after %v, median %v, last %v", victim.ID, len(again),
		again[0].Round(time.Millisecond), again[len(again)/2].Round(time.Millisecond), last.Round(time.Millisecond))
	return last
}

// TestFailoverOfGroups measures what the death of a node costs that leads a third of the groups: the time until each of
// its groups has a leader again, and the errors and latencies of the other groups. With 64 groups and -chaos.repeat=20
// it takes about a quarter of an hour.
func TestFailoverOfGroups(t *testing.T) {
	if *failoverGroups == 0 {
		t.Skip("measures for minutes: only with -chaos.failover.groups")
	}
	cluster := startedGroups(t, *failoverGroups)
	var last, others []time.Duration
	errors := 0
	for i := range *repeat {
		all := awaitSpread(t, cluster, *failoverGroups)
		victim := cluster.Nodes[1+i%(len(cluster.Nodes)-1)]
		lost, kept := failOver(t, cluster, victim, all)
		last = append(last, lastLedAgain(t, victim, lost))
		for _, w := range kept {
			errors += w.errors
			others = append(others, w.took...)
		}
		require.NoError(t, victim.Start())
		require.NoError(t, victim.AwaitUp(t.Context()))
	}
	summarize(t, "kill -9 of a node to the last of its groups led again", last, promisedGroupFailover)
	slices.Sort(others)
	t.Logf("the other groups: %d answers, %d errors, p50 %v, p99 %v, worst %v (promised p99 %v)", len(others), errors,
		others[len(others)/2], others[len(others)*99/100], others[len(others)-1], promisedUndisturbed)
}
