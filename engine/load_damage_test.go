package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// TestLoadOfDamagedChanges stores limiters of policies, holds and blocks, damages one change, and loads all changes.
// Load must refuse the change, or the table must pass its audit, store and load its entries again, and decide.
func TestLoadOfDamagedChanges(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	refused, accepted := 0, 0
	for seed := range uint64(60) {
		b := newBounded(seed)
		b.setPolicy()
		for i := range 60 {
			b.step(i)
		}
		changes := drained(t, b.table)
		rng := rand.New(rand.NewPCG(seed, 5))
		for range 50 {
			if table := loadedWith(b.at, withDamage(rng, changes)); table == nil {
				refused++
			} else {
				accepted++
				requireValid(t, table, seed, b.at)
			}
		}
	}
	require.Positive(t, refused)
	require.Positive(t, accepted)
	t.Log(refused, "refused", accepted, "accepted")
}

// requireValid audits a loaded table, stores and loads its entries again, and decides.
func requireValid(t *testing.T, table *Table, seed uint64, at Stamp) {
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

// withDamage returns the changes with a damaged key or value in one of them.
func withDamage(rng *rand.Rand, changes []Change) []Change {
	changes = slices.Clone(changes)
	c := &changes[rng.IntN(len(changes))]
	if len(c.Value) == 0 || rng.IntN(4) == 0 {
		c.Key = Damaged(rng, c.Key)
	} else {
		c.Value = Damaged(rng, c.Value)
	}
	return changes
}

// Damaged returns b cut short, longer by a byte, or with a changed byte. Tests in package engine_test use it as well.
func Damaged(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	switch i := rng.IntN(len(b)); rng.IntN(6) {
	case 0:
		return b[:i]
	case 1:
		return append(b, byte(rng.IntN(256)))
	case 2:
		b[i] = 0xff
	default:
		b[i] ^= 1 << rng.IntN(8)
	}
	return b
}

// loadedWith returns a table with the changes, or nil if a change is refused. A node then does not start.
func loadedWith(at Stamp, changes []Change) *Table {
	table := NewTable(Options{Shards: 1, TrackChanges: true, IDLifetimeNs: 1e9})
	if _, err := table.Load(at, changes); err != nil {
		return nil
	}
	return table
}
