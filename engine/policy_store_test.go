package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// TestPoliciesComeBackFromAJournal keeps the changes of random operations on policies in order, without those from
// before the last pass of Renew. It then loads them as a start does: only changes with one OrderKey in their order. The
// loaded table must have the same state, and takes the place of the table.
func TestPoliciesComeBackFromAJournal(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &policyTraffic{Rand: seeded(seed + 300), at: engine.Stamp{NowNs: 1e18}}
			table, j := metaTable(1<<g.IntN(6)), &passJournal{t: t, Rand: g.Rand}
			for range 60 {
				for range g.IntN(60) {
					decideAt(table, g.at, g.next())
					g.pass()
				}
				table.Collect(g.at, g.IntN(30))
				table.Victims(g.at, 1e6, g.IntN(6), func(key, id []byte) {
					if g.IntN(3) > 0 { // sometimes only a part of a bundle
						decideAt(table, g.at, engine.Op{Code: engine.OpForget, Key: key, ID: id})
					}
				})
				j.keep(table)
				if g.IntN(4) == 0 {
					again := j.load(g.at)
					require.Equal(t, table.StateHash(g.at), again.StateHash(g.at))
					table, j.cursor = again, 0
				}
			}
			require.Positive(t, j.bundles)
		})
	}
}

// passJournal keeps changes as a journal with rewrite passes does.
type passJournal struct {
	t *testing.T
	*rand.Rand
	changes []engine.Change
	cursor  uint64 // of Renew
	begun   int    // the number of changes when the pass began
	bundles int    // changes of bundles
}

func (j *passJournal) keep(table *engine.Table) {
	if j.cursor == 0 {
		j.begun = len(j.changes)
	}
	j.cursor = table.Renew(j.cursor, j.IntN(20))
	require.NoError(j.t, table.Drain(1+j.IntN(20), func(changes []engine.Change) error {
		for _, c := range changes {
			j.changes = append(j.changes, engine.Change{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value)})
			if c.Key[0] == 'm' {
				j.bundles++
			}
		}
		return nil
	}))
	if j.cursor == 0 {
		j.changes = j.changes[j.begun:]
	}
}

// load loads the changes into a new table. It takes them from random lanes.
func (j *passJournal) load(at engine.Stamp) *engine.Table {
	table, lanes := metaTable(1<<j.IntN(6)), [4][]engine.Change{}
	lane := map[string]int{}
	for _, c := range j.changes {
		key := string(engine.OrderKey(c.Key))
		if _, ok := lane[key]; !ok {
			lane[key] = j.IntN(len(lanes))
		}
		lanes[lane[key]] = append(lanes[lane[key]], c)
	}
	for left := len(j.changes); left > 0; {
		i := j.IntN(len(lanes))
		if len(lanes[i]) == 0 {
			continue
		}
		c := lanes[i][0]
		lanes[i], left = lanes[i][1:], left-1
		if c.Value == nil {
			require.NoError(j.t, loadOne(table, engine.Stamp{}, c.Key, nil))
			continue
		}
		err := loadOne(table, at, c.Key, c.Value)
		require.NoError(j.t, err)
	}
	requireUnchanged(j.t, table)
	return table
}
