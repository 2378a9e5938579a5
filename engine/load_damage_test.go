package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// TestLoadOfDamagedChanges loads what traffic under policies stored, with a damaged change in it. Load must refuse the
// change, or leave a table whose accounts agree, whose entries can be stored and loaded again, and that decides.
func TestLoadOfDamagedChanges(t *testing.T) {
	seeds, refused, accepted := uint64(60), 0, 0
	if race.Enabled {
		seeds = 10
	}
	for seed := range seeds {
		b := newBounded(seed)
		b.setPolicy()
		for i := range 60 {
			b.step(i)
		}
		changes := drained(t, b.table)
		rng := rand.New(rand.NewPCG(seed, 5))
		for range 50 {
			if table := loadedWith(b.at, damage(rng, changes)); table == nil {
				refused++
			} else {
				accepted++
				requireSound(t, table, seed, b.at)
			}
		}
	}
	require.Positive(t, refused)
	require.Positive(t, accepted)
	t.Log(refused, "refused", accepted, "accepted")
}

// requireSound checks a table that was loaded.
func requireSound(t *testing.T, table *Table, seed uint64, at Stamp) {
	t.Helper()
	require.NoError(t, table.shards[0].Audit())
	for cursor := table.Renew(0, 100); cursor != 0; {
		cursor = table.Renew(cursor, 100)
	}
	again := loadedWith(at, drained(t, table))
	require.NotNil(t, again, "what was drained must load")
	require.Equal(t, table.StateHash(at), again.StateHash(at), "the same after a second load")
	b := newBounded(seed)
	b.table, b.at = table, at
	for i := range 50 {
		b.step(i)
	}
	require.NoError(t, table.shards[0].Audit())
}

// drained returns copies of the changes that a table has not handed out.
func drained(t *testing.T, table *Table) (all []Change) {
	require.NoError(t, table.Drain(10, func(changes []Change) error {
		for _, c := range changes {
			all = append(all, Change{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value)})
		}
		return nil
	}))
	return all
}

// damage changes, cuts or lengthens the key or the value of a change.
func damage(rng *rand.Rand, changes []Change) []Change {
	changes = append([]Change(nil), changes...)
	c := &changes[rng.IntN(len(changes))]
	b := &c.Value
	if len(c.Value) == 0 || rng.IntN(4) == 0 {
		b = &c.Key
	}
	bad := bytes.Clone(*b)
	switch i := rng.IntN(len(bad)); rng.IntN(6) {
	case 0:
		bad = bad[:i]
	case 1:
		bad = append(bad, byte(rng.IntN(256)))
	case 2:
		bad[i] = 0xff
	default:
		bad[i] ^= 1 << rng.IntN(8)
	}
	*b = bad
	return changes
}

// loadedWith returns a table with the changes, or nil if one is refused: a node then does not start.
func loadedWith(at Stamp, changes []Change) *Table {
	table := NewTable(Options{Shards: 1, TrackChanges: true, IDLifetimeNs: 1e9})
	for _, c := range changes {
		var err error
		if c.Value == nil {
			err = table.Unload(c.Key)
		} else {
			_, err = table.Load(at, c.Key, c.Value)
		}
		if err != nil {
			return nil
		}
	}
	return table
}
