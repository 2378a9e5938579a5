package clienttest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/weirproc"
)

// tierNode is the node whose address the clients of a tier get. It never has a replica, and stays up.
const tierNode = "f"

// tierZones are the zones of the nodes from a to f.
var tierZones = []string{"z1", "z2", "z3", "z1", "z3", "z2"}

// tierMoves are made while a client takes units: group, source, target. They move a leader of each group, or a replica
// beside it, and leave node a without replicas.
var tierMoves = [][3]string{
	{"0", "a", "d"}, {"1", "c", "e"}, {"1", "a", "d"}, {"2", "c", "e"}, {"2", "a", "d"}, {"3", "a", "d"},
}

// keysInGroup is how many pairs of keys a client takes units of in each group, in different slots.
const keysInGroup = 4

// TestTierOfGoClients runs with the clients of other languages, because it takes minutes.
func TestTierOfGoClients(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: clients at six nodes run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	for _, kind := range goClusterClients(t) {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			testTier(t, kind)
		})
	}
}

// testTier checks that a client which knows one address, of a node without replicas, goes on while replicas move and
// while any other node is lost. Some clients need a minute after each loss. So with redirects, two nodes are lost only:
// the one that has lost its replicas, and the one that has them all.
func testTier(t *testing.T, kind clientKind) {
	t.Run("tier-forward", func(t *testing.T) { testTierWith(t, kind, "forward") })
	t.Run("tier-moved", func(t *testing.T) { testTierWith(t, kind, "moved", "a", "d") })
}

// testTierWith is testTier for one value of --redirect. The nodes that are lost are all but tierNode if none is named.
func testTierWith(t *testing.T, kind clientKind, redirect string, victims ...string) {
	c := startClusterOf(t, nil, func(node int) []string {
		return []string{"--redirect", redirect, "--groups", strconv.Itoa(severalGroups), "--replicas", "3",
			"--zone", tierZones[node]}
	}, "d", "e", tierNode)
	c.groups = severalGroups
	c.spread()
	client := kind.dial(t, c.addrs(tierNode))
	defer client.close()
	l := c.newLoad(client, kind, c.tierPrefixes()...)
	l.during(t, "replicas move", func() {
		for _, m := range tierMoves {
			c.move(m[0], m[1], m[2])
			l.goesOn(t)
		}
		c.handOver(1, "d")
	})
	c.mapsReplicas()
	l.counted(t, c)
	kind.quiet(t, false)

	l.worries.expectDeath(true)
	if len(victims) == 0 {
		victims = c.ids[:len(c.ids)-1]
	}
	for _, victim := range victims {
		l.during(t, victim+" is lost and comes back", func() {
			c.nodes[victim].kill()
			l.goesOn(t)
			c.nodes[victim].Start()
			c.awaitReady(victim)
		})
		kind.quiet(t, true)
	}
	c.mapsReplicas()
	l.counted(t, c)
	l.takeRest(t, c)
}

// tierPrefixes returns prefixes of keys in several slots of each group. Neighbours are of different groups.
func (c *cluster) tierPrefixes() (list []string) {
	for i := range keysInGroup {
		for group := range c.groups {
			slots := hashslot.OfGroup(group, c.groups)
			slot := slots.First + (slots.Last-slots.First)/keysInGroup*uint16(i)
			list = append(list, "{"+hashslot.Tag(slot)+"}")
		}
	}
	return list
}

// move moves a replica, as an operator does at the node without replicas.
func (c *cluster) move(group, from, to string) {
	c.t.Helper()
	out, err := weirproc.Command("cluster", "move", group, from, to, "--addr", c.nodes[tierNode].addr).CombinedOutput()
	require.NoError(c.t, err, "%s", out)
}

// mapsReplicas waits until the node without replicas lists the slots of each group once, with the leader as their
// primary and the other replicas, none of which is on this node or on a.
func (c *cluster) mapsReplicas() {
	c.t.Helper()
	named := map[string]string{}
	for id, w := range c.nodes {
		named[w.port()] = id
	}
	until(c.t, "the map differs from the status", func() bool {
		reply, err := c.nodes[tierNode].ask("WEIR.CLUSTER", "STATUS")
		require.NoError(c.t, err)
		status, err := remote.ReadStatus(reply)
		require.NoError(c.t, err)
		ranges, err := redis.Values(c.nodes[tierNode].ask("CLUSTER", "SLOTS"))
		if err != nil || len(ranges) != c.groups {
			return false
		}
		for i, r := range ranges {
			g := &status.Groups[i]
			want, got := []string{g.Leader}, []string{}
			for _, replica := range g.Replicas {
				require.NotContains(c.t, []string{"a", tierNode}, replica.ID)
				if replica.ID != g.Leader {
					want = append(want, replica.ID)
				}
			}
			r := r.([]any)
			for _, node := range r[2:] {
				got = append(got, named[fmt.Sprint(node.([]any)[1])])
			}
			slices.Sort(want[1:])
			slices.Sort(got[1:])
			require.EqualValues(c.t, g.FirstSlot, r[0])
			require.EqualValues(c.t, g.LastSlot, r[1])
			if len(want) != 3 || !slices.Equal(want, got) {
				return false
			}
		}
		return true
	})
}
