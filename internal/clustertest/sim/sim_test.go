package sim

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seedsFlag    = flag.Int("sim.seeds", 8, "how many seeds to run")
	seedFlag     = flag.Uint64("sim.seed", 1, "the first of them")
	nodesFlag    = flag.Int("sim.nodes", 0, "nodes of a cluster; 0: 3 or 5, with replicas 5 or 6, by the seed")
	groupsFlag   = flag.Int("sim.groups", 1, "Raft groups of a cluster")
	replicasFlag = flag.Int("sim.replicas", 0, "nodes that have a replica of each group; 0: every node has all groups")
	logFlag      = flag.Bool("sim.log", false, "print what nodes log and what happens")
)

// stuckAfter is how long one seed may take in real time. It is a hundred times the usual duration.
const stuckAfter = 3 * time.Minute

// TestSeeds runs the usual mix of faults on consecutive seeds and checks that no promise is broken. Requests have
// alternatives, holds grow, and all members have the same events, each once.
func TestSeeds(t *testing.T) {
	r := runSeeds(t, Config{Groups: *groupsFlag, Replicas: *replicasFlag}, *seedsFlag)
	for _, kind := range []string{"else", "split", "extension", "report", "threshold"} {
		require.True(t, r.Budgets[kind] > 0 || *seedsFlag < 8, "no %s: a few seeds may have none", kind)
	}
}

func runSeeds(t *testing.T, c Config, seeds int) *Report {
	total := &Report{}
	for i := range seeds {
		seed := *seedFlag + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			c.Seed, c.Nodes, c.rivals = seed, nodesOf(seed), seed%4 < 2
			if c.Replicas > 0 && *nodesFlag == 0 { // not every node has every group
				c.Nodes = 5 + int(seed%2)
			}
			r := simulate(t, c)
			total.Add(r)
			if len(r.Violations) > 0 {
				t.Errorf("%s\n%s", strings.Join(r.Violations, "\n"), r.Story())
			}
			require.Positive(t, r.Decisions, "the run must decide at least one request")
		})
	}
	t.Log(total)
	return total
}

// TestSeedsOfGroups does the same in clusters with several Raft groups.
func TestSeedsOfGroups(t *testing.T) {
	for groups, seeds := range map[int]int{4: *seedsFlag / 2, 16: *seedsFlag / 4} {
		t.Run(fmt.Sprint(groups, " groups"), func(t *testing.T) { runSeeds(t, Config{Groups: groups}, seeds) })
	}
}

// TestSeedsOfReplicas does TestSeeds in clusters of five or six nodes, each of which has some of the groups. Operators
// move replicas. In the end the last move of each group is done when it is repeated, and each group has its replicas.
func TestSeedsOfReplicas(t *testing.T) {
	r := runSeeds(t, Config{Groups: 4, Replicas: 3}, *seedsFlag/4)
	require.True(t, r.Moves["done"] > 0 || *seedsFlag < 8, "no move was done: a few seeds may have none")
}

// TestSeedsOfSharedItems does TestSeeds with clients that race on what all groups share: RL.POLICY SET and DEL,
// overrides, RL.BLOCK and RL.UNBLOCK of one key and EVERYWHERE, pipelines of them as SADD sends, RL.RESET over groups
// and FLUSHALL. They repeat blocks with their IDs. Groups with one version have the same items at any time, an answered
// change is in force in every group, and in the end no group differs.
func TestSeedsOfSharedItems(t *testing.T) {
	r := runSeeds(t, Config{Groups: 8, shared: true}, *seedsFlag/2)
	require.Positive(t, r.SharedAnswers)
	require.Positive(t, r.SharedCompared)
	t.Logf("%d comparisons of the shared items of groups, and %d requests to groups after an answered change",
		r.SharedCompared, r.SharedAnswers)
}

func nodesOf(seed uint64) int {
	if *nodesFlag != 0 {
		return *nodesFlag
	}
	return 3 + 2*int(seed%2)
}

// simulate runs one seed in a bubble.
func simulate(t *testing.T, c Config) *Report {
	r := NewReport()
	c.Logger = slog.New(slog.DiscardHandler)
	if *logFlag {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	watchdog := time.AfterFunc(stuckAfter*time.Duration(1+c.Groups/8), func() { // groups take time
		debug.SetTraceback("all")
		panic(fmt.Sprintf("seed %d, %d nodes: the simulation stands still\n%s", c.Seed, c.Nodes, r.Story()))
	})
	defer watchdog.Stop()
	bubble(t, c, r)
	r.Judge()
	return r
}
