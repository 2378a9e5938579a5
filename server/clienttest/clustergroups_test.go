package clienttest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
)

const (
	// severalGroups is the number of Raft groups of the clusters that have several.
	severalGroups = 4
	// mostAttempts bounds how often a client may send one command on average, with all redirects. A client in an
	// endless loop exceeds it at once.
	mostAttempts = 4
)

// testFollowsLeaders is testFollowsLeader for a cluster with several Raft groups. Every node leads a group. Each
// pipeline has keys of all groups, if the client can send it. The node that leads most groups is killed, comes back,
// and gets the leadership of all groups.
func testFollowsLeaders(t *testing.T, kind clientKind, redirect string) {
	c := startCluster(t, nil, "--redirect", redirect, "--groups", strconv.Itoa(severalGroups))
	c.groups = severalGroups
	victim := c.spread()
	seeds := c.addrs(nodeIDs...)
	if redirect == "moved" && kind.learns {
		seeds = c.addrs(victim)
	}
	client := kind.dial(t, seeds)
	defer client.close()
	speakInCluster(t, client, !kind.keyless && !kind.oneError)
	l := c.newLoad(client, kind, c.prefixes()...)
	settled := func() {
		t.Helper()
		if redirect == "moved" && !kind.stateless && !kind.keyless {
			l.settles(t, c)
		}
	}

	l.during(t, "at the start", settled)
	l.counted(t, c)
	kind.quiet(t, false)

	l.survives(t, c, kind, victim, settled)
	l.during(t, "it gets the leadership of all groups", func() {
		c.transfer(victim)
		settled()
	})
	l.worries.expectDeath(false)
	l.counted(t, c)
	l.ends(t, c)
	l.takeRest(t, c)
	kind.quiet(t, false)
}

// TestSlotMapsHaveNoGaps restarts a node. From its start on, the node's map of the slots is empty or complete, although
// the node learns the addresses of the others a little later.
func TestSlotMapsHaveNoGaps(t *testing.T) {
	c := startCluster(t, nil, "--redirect", "moved", "--groups", strconv.Itoa(severalGroups))
	c.groups = severalGroups
	restarted := c.nodes[c.spread()]
	restarted.kill()
	restarted.Start()
	until(t, "the map of the restarted node names no other node", func() bool {
		ranges, err := redis.Values(restarted.ask("CLUSTER", "SLOTS"))
		if err != nil || len(ranges) == 0 {
			return false
		}
		slots, others := int64(0), 0
		for _, r := range ranges {
			var first, last int64
			var primary []any
			_, err := redis.Scan(r.([]any), &first, &last, &primary)
			require.NoError(t, err)
			require.Equal(t, slots, first, "the ranges are %v", ranges)
			slots = last + 1
			if !strings.HasSuffix(restarted.addr, fmt.Sprintf(":%d", primary[1])) {
				others++
			}
		}
		require.EqualValues(t, hashslot.Count, slots, "the ranges are %v", ranges)
		return others > 0
	})
}

// spread gives the groups to the nodes by turns, and returns the node that leads the most.
func (c *cluster) spread() (most string) {
	c.t.Helper()
	for group := range c.groups {
		c.handOver(group, nodeIDs[group%len(nodeIDs)])
	}
	return nodeIDs[0]
}

// handOver transfers the leadership of a group to a node.
func (c *cluster) handOver(group int, to string) {
	c.t.Helper()
	until(c.t, fmt.Sprintf("group %d does not go to %s", group, to), func() bool {
		from := c.leaders()[group]
		if from == to {
			return true
		}
		_, err := c.nodes[from].ask("WEIR.CLUSTER", "TRANSFER", to, "GROUP", strconv.Itoa(group))
		return err == nil && c.leaders()[group] == to
	})
}

// settles waits until the client sends each command to the leader of its group, so that no node redirects it.
func (l *load) settles(t *testing.T, c *cluster) {
	t.Helper()
	until(t, "the nodes redirect the client again and again", func() bool {
		before := c.redirects()
		l.goesOn(t)
		return c.redirects() == before
	})
}

// redirects returns how many commands the running nodes have answered with MOVED.
func (c *cluster) redirects() (sum int) {
	c.t.Helper()
	for _, w := range c.nodes {
		if !w.Running() {
			continue
		}
		text, err := redis.String(w.ask("INFO", "errorstats"))
		require.NoError(c.t, err)
		if _, stat, ok := strings.Cut(text, "errorstat_MOVED:count="); ok {
			n := 0
			_, err = fmt.Sscanf(stat, "%d", &n)
			require.NoError(c.t, err)
			sum += n
		}
	}
	return sum
}

// ends checks that no command of the load went around in a loop.
func (l *load) ends(t *testing.T, c *cluster) {
	t.Helper()
	calls := 0
	for _, w := range c.nodes {
		calls += w.calls()
	}
	t.Logf("%d commands, %d attempts", l.sent.Load(), calls)
	assert.Less(t, int64(calls), mostAttempts*l.sent.Load(), "attempts of the client")
}
