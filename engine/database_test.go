package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
)

// storedIn returns an operation with the names that a database stores.
func storedIn(database int, op engine.Op) engine.Op {
	op.Key = engine.AppendStored(nil, database, op.Key)
	if op.Code == engine.OpReserve {
		op.ID = engine.AppendStored(nil, database, op.ID)
	}
	return op
}

func policyOfTwo(first, second int64) engine.Policy {
	p := ofWindow(first)
	p.Limits = append(p.Limits, ofWindow(second).Limits...)
	return p
}

func bucketOp(key string) engine.Op {
	return engine.Op{Key: []byte(key), Limit: bucketOf(1, 1e9, 10), Cost: 1}
}

// TestStoredNames checks that a stored name gives back the database and the name, and is in the slot of the name.
func TestStoredNames(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"k", "{tag}k", "ip:192.0.2.1", "a|b", "\x00db", "\x00dbx|k", "policy", "policy|",
		"policy|p",
		"policy|p|0|k", "policy|p|7|{tag}k", "policy|p|9|k", strings.Repeat("k", engine.MaxDatabaseKeyLen)} {
		for database := range engine.Databases {
			stored := engine.AppendStored(nil, database, []byte(name))
			require.False(t, seen[string(stored)], "%q", stored)
			seen[string(stored)] = true
			in, cut := engine.CutDatabase(stored)
			require.Equal(t, database, in, "%q", stored)
			require.Equal(t, name, string(cut))
			require.Equal(t, database > 0, engine.IsStored(stored))
			require.Equal(t, engine.SlotOf([]byte(name)), engine.SlotOf(stored), "%q", stored)
			require.LessOrEqual(t, len(stored), engine.MaxNameLen)
		}
	}
	require.Equal(t, hashslot.Of([]byte("foo")), hashslot.Of(engine.AppendStored(nil, 15, []byte("foo"))))
}

// TestDatabasesShareNothing checks that operations in one database change no key of another one, that each is counted,
// and that a flush empties one database and leaves the blocks everywhere.
func TestDatabasesShareNothing(t *testing.T) {
	for _, shards := range []int{1, 16} {
		at := engine.Stamp{NowNs: 1e18}
		table := engine.NewTable(engine.Options{Shards: shards, TrackChanges: true})
		do := func(database int, op engine.Op) engine.Decision {
			d := decideAt(table, at, storedIn(database, op))
			require.Equal(t, engine.OK, d.Status)
			return d
		}
		length := func(database int) int64 { return table.LenWithin(at, database, hashslot.All) }
		do(0, setPolicy("p", policyOfTwo(10, 20)))
		for database := range 3 {
			for i := range 100 {
				key := []byte(fmt.Sprint("key:", i))
				op := bucketOp(string(key))
				require.EqualValues(t, op.Limit.Max-1, do(database, op).Remaining)
				require.EqualValues(t, 9, do(database, check(1, "p", string(key))).Remaining)
			}
			do(database, engine.Op{Code: engine.OpBlock, Key: []byte("key:1"), TTLNs: 1e12})
			do(database, engine.Op{Code: engine.OpBlock, Key: []byte("blocked"), TTLNs: 1e12})
			do(database, engine.Op{Code: engine.OpReserve, Text: []byte("p"), Key: []byte("held"), ID: []byte("id"),
				Cost: 5, TTLNs: 1e12})
		}
		do(0, engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:192.0.2.1"), TTLNs: 1e12})
		const keys = 100 + 200 + 1 + 2
		require.EqualValues(t, keys+1, length(0))
		require.EqualValues(t, keys, length(1))
		require.EqualValues(t, keys, length(2))
		require.Zero(t, length(3))
		require.EqualValues(t, 3*keys+1, table.Len(at))
		require.NoError(t, engine.Audit(table))

		denied := bucketOp("route|192.0.2.1")
		require.Zero(t, do(2, denied).Allowed, "a block everywhere is of all databases")

		flush := func(database int64) {
			d := decideAt(table, at, engine.Op{Code: engine.OpFlush, Key: []byte("any"), Cost: database})
			require.EqualValues(t, 1, d.Allowed)
		}
		flush(1)
		require.Zero(t, length(1))
		require.EqualValues(t, keys+1, length(0))
		require.EqualValues(t, keys, length(2))
		require.EqualValues(t, 10, do(1, check(0, "p", "held")).Remaining)
		commit := storedIn(1, engine.Op{Code: engine.OpCommit, Key: []byte("id")})
		require.Equal(t, engine.NoHold, decideAt(table, at, commit).Status)
		require.EqualValues(t, 5, do(2, check(0, "p", "held")).Remaining)
		flush(0)
		require.EqualValues(t, 1, length(0), "the block everywhere stays")
		require.Zero(t, do(2, denied).Allowed)
		require.EqualValues(t, keys, length(2))
		require.NoError(t, engine.Audit(table))
	}
}
