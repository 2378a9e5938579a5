package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// text returns a text of n bytes.
func text(n int64) []byte { return bytes.Repeat([]byte("t"), int(n)) }

// pairs returns n distinct pairs of a policy and a key.
func pairs(n int64) (all []engine.Pair) {
	for i := range n {
		all = append(all, engine.Pair{Policy: []byte("q"), Key: fmt.Append(nil, "k", i)})
	}
	return all
}

// validLimits are limits of every kind that Limit.Valid distinguishes.
var validLimits = map[string]engine.Limit{
	"bucket":  {Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1}, Max: 1},
	"leaky":   {Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: 1}},
	"log":     {Algorithm: engine.SlidingLog, WindowNs: 1, Max: 1},
	"counter": {Algorithm: engine.SlidingCounter, WindowNs: 1, Max: 1},
	"fixed":   {Algorithm: engine.FixedWindow, WindowNs: 1, Max: 1},
	"month":   {Algorithm: engine.FixedWindow, Mode: engine.Month, Max: 1},
	"forever": {Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1},
	"strike": {Algorithm: engine.Strike, WindowNs: 1, Max: 1,
		Steps: engine.MakeSteps([]engine.Step{{Threshold: 1, PenaltyNs: 1}})},
	"attempts": {Algorithm: engine.Strike, Strikes: engine.Attempts | engine.Extend, WindowNs: 1, Max: 2,
		Steps: engine.MakeSteps(
			[]engine.Step{{Threshold: 1, PenaltyNs: 1, Delay: true}, {Threshold: 2, PenaltyNs: 1}})},
	"delay": {Algorithm: engine.Strike, WindowNs: 1, Max: 1,
		Steps: engine.MakeSteps([]engine.Step{{Threshold: 1, PenaltyNs: 1, Delay: true}})},
	"concurrency": {Algorithm: engine.Concurrency, Max: 1},
}

// validOp returns a minimal valid operation of each kind.
func validOp(code engine.OpCode) engine.Op {
	op := engine.Op{Code: code, Key: []byte("k"), Cost: 1}
	switch code {
	case engine.OpTake:
		op.Limit = validLimits["concurrency"]
	case engine.OpRelease, engine.OpRenew:
		op.Text = []byte("holder")
	case engine.OpIncr:
		op.Incr = &engine.Incr{}
	case engine.OpCheck, engine.OpForgive, engine.OpCharge:
		op.Text = []byte("p")
	case engine.OpReserve:
		op.Text, op.ID, op.TTLNs = []byte("p"), []byte("id"), 1
	case engine.OpExtend:
		op.ID = engine.ExtensionID(1)
	case engine.OpResetPolicy:
		op.Key = []byte("policy|p|0|k")
	case engine.OpPolicy:
		op.Policy = &engine.PolicyChange{Do: engine.PolicyDelete}
	case engine.OpScript:
		op.Script = &engine.Script{ID: engine.NoScript + 1}
	}
	return op
}

// bound is a field of an operation with its least and its greatest valid value.
type bound struct {
	name        string
	op          engine.Op
	set         func(op *engine.Op, v int64)
	least, most int64
}

// check tries both bounds, and the values next to them where they exist.
func (b bound) check(t *testing.T) {
	t.Helper()
	valid := func(v int64) bool {
		op := b.op
		b.set(&op, v)
		return wire.Valid(&op)
	}
	require.True(t, valid(b.least), "%s: %d", b.name, b.least)
	require.True(t, valid(b.most), "%s: %d", b.name, b.most)
	require.False(t, valid(b.least-1), "%s: %d", b.name, b.least-1)
	require.False(t, valid(b.most+1), "%s: %d", b.name, b.most+1)
}

// checkLength is check for a field with a bounded length.
func (b bound) checkLength(t *testing.T) {
	t.Helper()
	if set := b.set; b.least == 0 {
		b.set = func(op *engine.Op, v int64) {
			if set(op, max(v, 0)); v < 0 {
				op.Cost = -1 // no length is negative
			}
		}
	}
	b.check(t)
}

func TestEveryOperationIsBounded(t *testing.T) {
	for code := range engine.NumOps {
		op := validOp(code)
		name := fmt.Sprint("operation ", code)
		least, mostTTL, key, id := int64(0), engine.Never, int64(engine.MaxKeyLen), int64(engine.MaxIDLen)
		mostCost := int64(engine.MaxUnits)
		switch code {
		case engine.OpReserve:
			bound{name + ": id", op, func(op *engine.Op, v int64) { op.ID = text(v) }, 1, id}.check(t)
			least, mostTTL = 1, engine.MaxWindowNs
		case engine.OpCommit, engine.OpCancel, engine.OpEnd:
			key, id = engine.MaxIDLen, 0
		case engine.OpExtend:
			bound{name + ": number", op, func(op *engine.Op, v int64) { op.ID = engine.ExtensionID(v) }, 1,
				engine.MaxExtensions}.check(t)
			key, mostTTL = engine.MaxIDLen, engine.MaxWindowNs
		case engine.OpPolicy:
			key = engine.MaxPolicyLen
		case engine.OpFlush:
			mostCost = engine.Databases - 1
		}
		if code != engine.OpResetPolicy { // see TestALimiterOfAPolicyIsItsOwn
			bound{name + ": key", op, func(op *engine.Op, v int64) { op.Key = text(v) }, 1, key}.check(t)
		}
		bound{name + ": cost", op, func(op *engine.Op, v int64) { op.Cost = v }, least, mostCost}.check(t)
		bound{name + ": wait", op, func(op *engine.Op, v int64) { op.WaitNs = v }, 0, engine.Never}.check(t)
		bound{name + ": ttl", op, func(op *engine.Op, v int64) { op.TTLNs = v }, least, mostTTL}.check(t)
		if code != engine.OpReserve && code != engine.OpExtend {
			bound{name + ": id", op, func(op *engine.Op, v int64) { op.ID = text(v) }, 0, id}.checkLength(t)
		}
	}
	unknown := engine.Op{Code: engine.NumOps, Key: []byte("k"), Cost: 1}
	require.False(t, wire.Valid(&unknown), "an operation of a later version must be invalid")
}

func TestTheTextIsBounded(t *testing.T) {
	set := func(op *engine.Op, v int64) { op.Text = text(v) }
	for code, most := range map[engine.OpCode]int64{
		engine.OpRelease: engine.MaxHolderLen, engine.OpRenew: engine.MaxHolderLen,
		engine.OpCheck: engine.MaxPolicyLen, engine.OpReserve: engine.MaxPolicyLen,
		engine.OpForgive: engine.MaxPolicyLen, engine.OpCharge: engine.MaxPolicyLen,
	} {
		bound{fmt.Sprint("text of ", code), validOp(code), set, 1, most}.check(t)
	}
	for code := range engine.NumOps {
		from := func(op *engine.Op, v int64) { op.From = text(v) }
		if decides := code == engine.OpTake || code == engine.OpCheck || code == engine.OpReserve; decides {
			bound{fmt.Sprint("from of ", code), validOp(code), from, 0, engine.MaxFromLen}.checkLength(t)
			continue
		}
		op := validOp(code)
		from(&op, 1)
		require.False(t, wire.Valid(&op), "operation %d must not have a source address", code)
	}
	bound{"holder", validOp(engine.OpTake), set, 0, engine.MaxHolderLen}.checkLength(t)
	bound{"reason", validOp(engine.OpBlock), set, 0, engine.MaxReasonLen}.checkLength(t)
}

func TestPairsAreBounded(t *testing.T) {
	policy := func(op *engine.Op, v int64) { op.Also = []engine.Pair{{Policy: text(v), Key: []byte("k")}} }
	key := func(op *engine.Op, v int64) { op.Also = []engine.Pair{{Policy: []byte("q"), Key: text(v)}} }
	for _, code := range []engine.OpCode{engine.OpCheck, engine.OpReserve, engine.OpForgive, engine.OpCharge} {
		op := validOp(code)
		bound{"pairs", op, func(op *engine.Op, v int64) { op.Also = pairs(v) }, 0, engine.MaxPairs - 1}.checkLength(t)
		bound{"policy of a pair", op, policy, 1, engine.MaxPolicyLen}.check(t)
		bound{"key of a pair", op, key, 1, engine.MaxKeyLen}.check(t)
		op.Also = []engine.Pair{{Policy: []byte("p"), Key: []byte("j")}, {Policy: []byte("q"), Key: []byte("k")}}
		require.True(t, wire.Valid(&op), "the same policy or the same key alone must not count as a repeated pair")
	}
	const rest = 4 + 1 + 1 + 4 + 1 // bytes that count beside the key of the second pair
	held := validOp(engine.OpReserve)
	held.Also = pairs(1)
	bound{"a hold", held, func(op *engine.Op, v int64) {
		op.Key = text(v / 2)
		op.Also = []engine.Pair{{Policy: []byte("q"), Key: text(v - v/2)}}
	}, 2, engine.MaxHoldBytes - rest + 1}.check(t)
}

// TestALimiterOfAPolicyIsItsOwn checks that only operations which evict, reset or refund may name a policy's limiter.
func TestALimiterOfAPolicyIsItsOwn(t *testing.T) {
	const name = "policy|p|0|"
	for code := range engine.NumOps {
		op := validOp(code)
		key := func(op *engine.Op, v int64) { op.Key = append([]byte(name), text(v-int64(len(name)))...) }
		switch code {
		case engine.OpReset, engine.OpRefund, engine.OpForget:
			bound{fmt.Sprint("key of ", code), op, func(op *engine.Op, v int64) {
				if key(op, max(v, int64(len(name)))); v < int64(len(name)) {
					op.Key = nil
				}
			}, int64(len(name)), int64(engine.MaxNameLen)}.check(t)
		case engine.OpResetPolicy:
			bound{fmt.Sprint("key of ", code), op, key, int64(len(name)) + 1, int64(engine.MaxNameLen)}.check(t)
			for _, other := range []string{"k", "policy|p|8|k", "policy|p"} {
				op.Key = []byte(other)
				require.False(t, wire.Valid(&op), other)
			}
		case engine.OpCommit, engine.OpCancel, engine.OpExtend, engine.OpEnd:
			key(&op, engine.MaxIDLen)
			require.True(t, wire.Valid(&op), "an id may consist of any bytes")
		default:
			key(&op, 20)
			require.False(t, wire.Valid(&op), "operation %d", code)
		}
	}
}

func TestOperationsNeedTheirArgument(t *testing.T) {
	spoiled := func(code engine.OpCode, spoil func(op *engine.Op)) {
		op := validOp(code)
		require.True(t, wire.Valid(&op))
		spoil(&op)
		require.False(t, wire.Valid(&op), "%+v", op)
	}
	spoiled(engine.OpTake, func(op *engine.Op) { op.Limit = engine.Limit{} })
	spoiled(engine.OpTake, func(op *engine.Op) { op.Limit.Algorithm = engine.Counter })
	spoiled(engine.OpIncr, func(op *engine.Op) { op.Incr = nil })
	spoiled(engine.OpPolicy, func(op *engine.Op) { op.Policy = nil })
	spoiled(engine.OpPolicy, func(op *engine.Op) { op.Policy.Own = true })
	spoiled(engine.OpPolicy, func(op *engine.Op) { op.Policy.Version = 1 })
	spoiled(engine.OpScript, func(op *engine.Op) { op.Script = nil })
	spoiled(engine.OpScript, func(op *engine.Op) { op.Script.Args[2] = math.NaN() })
	spoiled(engine.OpScript, func(op *engine.Op) { op.Script.ID = engine.NumScripts })
	spoiled(engine.OpScript, func(op *engine.Op) { op.Script.ID = engine.NoScript })
	spoiled(engine.OpScript, func(op *engine.Op) { op.Script.Values[0] = text(engine.MaxValueBytes + 1) })
	spoiled(engine.OpScript, func(op *engine.Op) { op.Script.Values[1] = text(engine.MaxValueBytes + 1) })
	spoiled(engine.OpCommit, func(op *engine.Op) { op.Dry = true })
	spoiled(engine.OpCancel, func(op *engine.Op) { op.Dry = true })
	bound{"expiry", validOp(engine.OpIncr), func(op *engine.Op, v int64) {
		op.Incr = &engine.Incr{Expire: engine.ExpireMode(v)}
	}, int64(engine.ExpireKeep), int64(engine.ExpireNone)}.check(t)
}

func TestLimitsAreBounded(t *testing.T) {
	fields := map[string]struct {
		set  func(l *engine.Limit, v int64)
		most int64
		in   string // the names of the limits for which the field must be at least 1
	}{
		"units": {func(l *engine.Limit, v int64) { l.Rate.Units = v }, engine.MaxUnits, "bucket leaky"},
		"per":   {func(l *engine.Limit, v int64) { l.Rate.PerNs = v }, engine.MaxWindowNs, "bucket leaky"},
		"max":   {func(l *engine.Limit, v int64) { l.Max = v }, engine.MaxUnits, ""},
		"window": {func(l *engine.Limit, v int64) { l.WindowNs = v }, engine.MaxWindowNs,
			"log counter fixed strike attempts delay"},
	}
	for name, limit := range validLimits {
		op := validOp(engine.OpTake)
		if op.Limit = limit; limit.Mode == engine.Month {
			op.Calendar = &engine.Calendar{}
		}
		for field, f := range fields {
			least := int64(0)
			if bytes.Contains([]byte(f.in), []byte(name)) {
				least = 1
			}
			bound{name + ": " + field, op, func(op *engine.Op, v int64) { f.set(&op.Limit, v) }, least, f.most}.check(t)
		}
	}
	for name, limit := range validLimits {
		op := validOp(engine.OpTake)
		if op.Limit = limit; limit.Mode == engine.Month {
			op.Calendar = &engine.Calendar{}
		}
		most := engine.StrikeMode(0)
		if limit.Algorithm == engine.Strike {
			most = engine.Attempts | engine.Extend
		}
		for mode := range engine.StrikeMode(16) {
			op.Limit.Strikes = mode
			require.Equal(t, mode <= most, wire.Valid(&op), "%s: mode %d", name, mode)
		}
	}
	op := validOp(engine.OpTake)
	for mode := engine.Aligned; mode <= engine.Forever+1; mode++ {
		calendar := mode >= engine.Day && mode <= engine.Year
		op.Limit = engine.Limit{Algorithm: engine.FixedWindow, Mode: mode, Max: 1}
		op.Calendar = &engine.Calendar{}
		require.Equal(t, mode >= engine.Day && mode <= engine.Forever, wire.Valid(&op), "mode %d without a window",
			mode)
		op.Limit.WindowNs = 1
		require.Equal(t, mode <= engine.Forever, wire.Valid(&op), "mode %d", mode)
		op.Calendar = nil
		require.Equal(t, mode <= engine.Forever && !calendar, wire.Valid(&op), "mode %d without a calendar", mode)
	}
}

func TestStepsAreBounded(t *testing.T) {
	steps := func(change func(v int64) []engine.Step) func(op *engine.Op, v int64) {
		return func(op *engine.Op, v int64) { op.Limit.Steps = engine.MakeSteps(change(v)) }
	}
	op := validOp(engine.OpTake)
	op.Limit = validLimits["strike"]
	bound{"steps", op, steps(func(v int64) (all []engine.Step) {
		for i := range v {
			all = append(all, engine.Step{Threshold: i + 1, PenaltyNs: 1})
		}
		return all
	}), 1, engine.MaxSteps}.check(t)
	bound{"threshold", op, steps(func(v int64) []engine.Step {
		return []engine.Step{{Threshold: v, PenaltyNs: 1}}
	}), 1, engine.MaxLogUnits}.check(t)
	bound{"penalty", op, steps(func(v int64) []engine.Step {
		return []engine.Step{{Threshold: 1, PenaltyNs: v}}
	}), 1, engine.MaxWindowNs}.check(t)
	bound{"second threshold", op, steps(func(v int64) []engine.Step {
		return []engine.Step{{Threshold: 7, PenaltyNs: 1}, {Threshold: v, PenaltyNs: 1}}
	}), 8, engine.MaxLogUnits}.check(t)
	op.Limit.Steps += "a part"
	require.False(t, wire.Valid(&op), "a partial step must be invalid")
}

// TestKeepIsOfHoldsAndBlocks checks which operations may have Keep, and that an ID of an extension is one.
func TestKeepIsOfHoldsAndBlocks(t *testing.T) {
	for code := range engine.NumOps {
		op := validOp(code)
		op.Keep = true
		may := code == engine.OpReserve || code == engine.OpCommit || code == engine.OpBlock
		require.Equal(t, may, wire.Valid(&op), "operation %d", code)
	}
	for _, id := range []string{"", "1", "SEQ ", "SEQ 01", "SEQ +1", "SEQ 1 ", "seq 1"} {
		op := validOp(engine.OpExtend)
		op.ID = []byte(id)
		require.False(t, wire.Valid(&op), "%q", id)
	}
}

// TestElseIsOfPairs checks which operations may have alternatives, and how many.
func TestElseIsOfPairs(t *testing.T) {
	for code := range engine.NumOps {
		op := validOp(code)
		op.Also, op.Else = append(op.Also, pairs(2)...), 1<<2
		require.Equal(t, code == engine.OpCheck || code == engine.OpReserve, wire.Valid(&op), "operation %d", code)
	}
	for _, c := range []struct {
		bits  engine.Alternatives
		valid bool
	}{
		{0, true}, {engine.Split, false}, {1<<1 | engine.Split, true}, {1<<1 | 1<<2 | 1<<5 | engine.Split, true},
		{1<<1 | 1<<2 | 1<<3 | 1<<4, false}, {1 << 5, true}, {1 << 6, false},
	} {
		op := validOp(engine.OpCheck)
		op.Also, op.Else = pairs(5), c.bits
		require.Equal(t, c.valid, wire.Valid(&op), "%b", c.bits)
		if c.valid && c.bits != 0 {
			require.EqualValues(t, 14, wire.FormatOf(&op))
		}
	}
	// A damaged or newer message with other bits is malformed.
	op := validOp(engine.OpCheck)
	op.Also, op.Else = pairs(1), 1<<1
	body := new(wire.Encoder).Call(nil, []engine.Op{op}, false)
	require.EqualValues(t, 1<<1, body[len(body)-1])
	for last, valid := range map[byte]bool{2: true, 3: true, 0: false, 1: false, 4: false, 0x80: false} {
		body[len(body)-1] = last
		var d wire.Decoder
		d.Reset(body)
		_, _, err := d.Next()
		require.Equal(t, valid, err == nil, "%x: %v", last, err)
	}
}
