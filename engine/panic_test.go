package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestPanicLeavesNoLock checks that a table can be used after a recovered panic in the middle of a batch.
func TestPanicLeavesNoLock(t *testing.T) {
	table, at := engine.NewTable(engine.Options{Shards: 1}), engine.Stamp{NowNs: 1e18}
	good := engine.Op{Key: []byte("key"), Limit: bucketOf(1, 1e9, 10), Cost: 1}
	never := good // no algorithm, and too large for any
	never.Key, never.Limit.Algorithm, never.Cost = []byte("bad"), engine.NoAlgorithm, 100
	ops, out := []engine.Op{good, never, good}, make([]engine.Decision, 3)
	decideOne(table, step{at, good}) // so that a scan finds a key
	visitor := func([]byte, engine.Algorithm) { panic("visitor") }
	for name, call := range map[string]func(){
		"Decide":       func() { table.Decide(at, ops, out) },
		"DecideAtomic": func() { table.DecideAtomic(at, ops, out) },
		"Denials":      func() { table.Denials(engine.Stamp{NowNs: 2e18}, ops[1:], out, make([]bool, 3)) },
		"Scan":         func() { table.Scan(engine.Stamp{NowNs: 1e18 + 1}, 0, 1, visitor) },
	} {
		require.Panics(t, call, name)
		done := make(chan engine.Decision)
		go func() { done <- decideOne(table, step{at, good}) }()
		select {
		case d := <-done:
			require.EqualValues(t, 1, d.Allowed, name)
		case <-time.After(10 * time.Second):
			t.Fatalf("%s left the shard locked", name)
		}
	}
	look := engine.Op{Key: good.Key, Limit: good.Limit}
	left := decideOne(table, step{at, look}).Remaining
	require.EqualValues(t, 10-1-4-2, left, "operations before a panic must count, and a read must not change the time")
}
