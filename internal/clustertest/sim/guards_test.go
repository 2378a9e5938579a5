package sim

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// races are the mixes of faults that provoke the situations which the guards of raftstore prevent.
var races = []weights{
	{"stale proposal": 1}, {"outlived denial": 1}, {"deposed at once": 1}, {"slow apply": 1},
	{"slow forward": 1}, {"stop at election": 1},
	{"stolen id": 1}, {"stolen address": 1}, {"forged join": 1}, {"late image": 1}, {"transfer": 1},
	{"lost disk": 1, "restart all": 1}, {"monotonic clock back": 1, "transfer": 2, "crash": 2},
}

// elsewhere maps each guard that no simulation can exercise, or only a rare one, to the test that exercises it, and to
// the reason.
var elsewhere = map[string]string{
	laterTerm:                          "TestADeposedLeaderDeniesNothing: the log mostly tells the term first",
	"second founding":                  "TestASecondFoundingIsIgnored: a leader founds only where nothing is committed",
	"answer in dispute":                "TestADisputeWithholdsAnswers: all nodes of a run decide alike",
	"table replaced during a snapshot": "TestASnapshotOfAReplacedTable: clients of a run never empty the table",
}

// guardRounds bounds how often each race runs. Usually two or three rounds are enough: the rarest guard, "founding beside
// a cluster", refuses something in about four of ten runs of its race.
const guardRounds = 40

// TestGuardsAreExercised runs the races in turn until every guard has refused something.
func TestGuardsAreExercised(t *testing.T) {
	if testing.Short() {
		t.Skip("runs many seeds")
	}
	total := &Report{}
	for round := range uint64(guardRounds) {
		for i, race := range races {
			t.Run(fmt.Sprint(ledger.Counts(race), " ", round), func(t *testing.T) {
				seed := *seedFlag + round*uint64(len(races)) + uint64(i)
				r := simulate(t, Config{Seed: seed, Nodes: nodesOf(seed), rivals: seed%2 == 0, weights: race})
				require.Empty(t, r.Violations, r.Story())
				total.Add(r)
			})
		}
		if left := slices.DeleteFunc(total.idle(), func(name string) bool { return elsewhere[name] != "" }); len(
			left) == 0 {
			t.Log(total)
			return
		}
	}
	t.Errorf("not every guard is exercised by %d rounds\n%s", guardRounds, total)
}
