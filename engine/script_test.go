package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// scriptOp draws an operation on one of a few keys of scripts.
func scriptOp(rng *rand.Rand) engine.Op {
	op := engine.Op{Code: engine.OpScript, Key: []byte{'k', byte('0' + rng.IntN(3))}}
	switch rng.IntN(12) {
	case 0:
		op.Code, op.TTLNs = engine.OpBlock, rng.Int64N(2e9)
		return op
	case 1:
		op.Code = engine.OpUnblock
		return op
	case 2:
		op.Code = engine.OpReset
		return op
	}
	op.Script = &engine.Script{}
	for i := range op.Script.Args {
		op.Script.Args[i] = float64(1 + rng.IntN(5))
	}
	for !op.Script.Valid() {
		op.Script.ID = engine.ScriptID(1 + rng.IntN(int(engine.NumScripts)-1))
	}
	if id := op.Script.ID; id >= engine.TextSet && id < engine.TextSet+10 {
		drawText(rng, op.Script)
	}
	return op
}

// drawText draws the arguments of a string script.
func drawText(rng *rand.Rand, call *engine.Script) {
	for i := range call.ID.TextsOf() {
		call.Values[i] = []byte(someTexts[rng.IntN(len(someTexts))])
	}
	call.Args[0], call.Args[1] = float64(rng.IntN(1<<10)), float64(rng.IntN(5000)-500)
	switch call.ID {
	case engine.TextExpire:
		call.Args[0], call.Args[1] = call.Args[1], call.Args[0]
	case engine.TextAppend:
		call.Args[0] = 4000
	}
}

var someTexts = []string{"", "1", "-7", "007", "abc", "abd", "12", strings.Repeat("long", 300),
	strings.Repeat("\x00", 3000), "9007199254740993"}

// TestScriptsOnReplicas checks that scripts leave the same state on all replicas. The replicas differ in shards, in
// collecting, and in storing and loading.
func TestScriptsOnReplicas(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		replicas := replicasOf(t, seed)
		at := engine.Stamp{NowNs: 1_800_000_000e9}
		for range 200 {
			at.NowNs += rng.Int64N(1 + rng.Int64N(3e9))
			requireAlike(t, replicas, block{at, []engine.Op{scriptOp(rng), scriptOp(rng)}})
		}
	}
}

// TestScriptOfAnotherShape checks that a key keeps the type of its first script, and that another type is refused.
func TestScriptOfAnotherShape(t *testing.T) {
	table := engine.NewTable(engine.Options{})
	at := engine.Stamp{NowNs: 1_800_000_000e9}
	rate := engine.Op{Code: engine.OpScript, Key: []byte("k"),
		Script: &engine.Script{ID: engine.RedisRateAllowN, Args: [engine.MaxScriptArgs]float64{5, 1, 1, 1}}}
	bucket := engine.Op{Key: []byte("k"), Cost: 1,
		Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 5}}
	require.Equal(t, engine.OK, decideOne(table, step{at, rate}).Status)
	require.Equal(t, engine.WrongType, decideOne(table, step{at, bucket}).Status)
	at.NowNs += 10e9
	require.Equal(t, engine.OK, decideOne(table, step{at, bucket}).Status, "an expired key must be free")
	require.Equal(t, engine.WrongType, decideOne(table, step{at, rate}).Status)
}
