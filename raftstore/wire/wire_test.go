package wire_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

func TestHeaderComesBack(t *testing.T) {
	h := wire.Header{
		Kind: wire.Clear, Format: wire.Version, Term: 7, Nonce: 1 << 63,
		At:         engine.Stamp{NowNs: 1 << 61, WallOffsetNs: -5},
		CheckIndex: 9, CheckHash: 1<<64 - 1,
	}
	b := append(make([]byte, wire.HeaderLen), "body"...)
	h.Put(b)
	got, body, err := wire.Split(b, wire.Version)
	require.NoError(t, err)
	require.Equal(t, h, got)
	require.Equal(t, "body", string(body))
}

func TestHeaderRefuses(t *testing.T) {
	newer := make([]byte, wire.HeaderLen)
	newer[0] = wire.Version + 1
	_, _, err := wire.Split(newer, wire.Version)
	require.ErrorIs(t, err, wire.ErrVersion)
	for _, b := range [][]byte{nil, {wire.Version}, make([]byte, wire.HeaderLen), {wire.Version, 200}} {
		_, _, err := wire.Split(b, wire.Version)
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
}

// genElse may divide the pairs of an operation into alternatives.
func genElse(t *rapid.T, op *engine.Op) {
	for i := range op.Also {
		if op.Else.Len() < engine.MaxAlternatives && rapid.IntRange(0, 3).Draw(t, "else") == 0 {
			op.Else |= 2 << i
		}
	}
	if op.Else != 0 && rapid.Bool().Draw(t, "split") {
		op.Else |= engine.Split
	}
}

// genOp draws an operation that the server might create.
func genOp(t *rapid.T) engine.Op {
	units := rapid.Int64Range(0, engine.MaxUnits)
	op := engine.Op{
		Code: engine.OpCode(rapid.IntRange(int(engine.OpTake), int(engine.OpForgive)+2).Draw(t, "code")),
		Key:  rapid.SliceOfN(rapid.Byte(), 1, engine.MaxKeyLen).Draw(t, "key"),
		Cost: units.Draw(t, "cost"), Partial: rapid.Bool().Draw(t, "partial"), Dry: rapid.Bool().Draw(t, "dry"),
		WaitNs: rapid.Int64Range(0, engine.Never).Draw(t, "wait"), TTLNs: rapid.Int64Range(0, engine.Never).Draw(
			t, "ttl"),
		ID:   rapid.SliceOfN(rapid.Byte(), 0, engine.MaxIDLen).Draw(t, "id"),
		Text: rapid.SliceOfN(rapid.Byte(), 1, engine.MaxHolderLen).Draw(t, "text"),
	}
	if op.Code > engine.OpForgive {
		op.Code = []engine.OpCode{engine.OpExtend, engine.OpCharge}[op.Code-engine.OpForgive-1]
	}
	if len(op.ID) == 0 {
		op.ID = nil
	} else if rapid.Bool().Draw(t, "bound") {
		op.Asks = engine.Fingerprint{1, 15: 7}
	}
	switch op.Code {
	case engine.OpCheck:
		op.Text, op.High = []byte("policy"), rapid.Bool().Draw(t, "high")
		for i := range rapid.IntRange(0, engine.MaxPairs-1).Draw(t, "pairs") {
			op.Also = append(op.Also, engine.Pair{Policy: fmt.Append(nil, "p", i), Key: op.Key})
		}
		genElse(t, &op)
	case engine.OpReserve:
		op.Key, op.Text, op.ID, op.Cost, op.TTLNs = op.Key[:min(len(op.Key), 30)], []byte("policy"), []byte("id"),
			1+op.Cost/2, 1+op.TTLNs%engine.MaxWindowNs
		op.Partial, op.Keep = false, op.Partial
		for i := range rapid.IntRange(0, engine.MaxPairs-1).Draw(t, "pairs") {
			op.Also = append(op.Also, engine.Pair{Policy: fmt.Append(nil, "p", i), Key: op.Key})
		}
		genElse(t, &op)
	case engine.OpForgive, engine.OpCharge:
		op.Text = []byte("policy")
	case engine.OpBlock:
		op.Dry, op.Keep = false, op.Dry
	case engine.OpCommit, engine.OpCancel:
		op.Key, op.ID, op.Dry = op.Key[:min(len(op.Key), engine.MaxIDLen)], nil, false
		op.Asks = engine.Fingerprint{}
		if op.Code == engine.OpCommit {
			op.Partial, op.Keep = false, op.Partial
		}
	case engine.OpExtend:
		op.Key, op.ID, op.Dry, op.TTLNs = op.Key[:min(len(op.Key), engine.MaxIDLen)],
			engine.ExtensionID(1+op.Cost%engine.MaxExtensions), false, op.TTLNs%engine.MaxWindowNs
	case engine.OpPolicy:
		op.Key = []byte("policy")
		op.Policy = &engine.PolicyChange{Do: engine.PolicyDelete, Reset: rapid.Bool().Draw(t, "reset")}
		if rapid.Bool().Draw(t, "set") {
			op.Policy.Do, op.Policy.Terms = engine.PolicySet, genPolicy(t)
			if op.Policy.Own = rapid.Bool().Draw(t, "own"); op.Policy.Own {
				op.Policy.Terms.Owner = rapid.SampledFrom([]string{"", "team-a"}).Draw(t, "owner")
			}
		}
		if op.Policy.If = rapid.Bool().Draw(t, "if"); op.Policy.If {
			op.Policy.Version = rapid.Uint64().Draw(t, "version")
		}
	case engine.OpTake:
		op.Limit = genLimit(t)
		if op.Limit.Mode >= engine.Day && op.Limit.Mode <= engine.Year {
			op.Calendar = &engine.Calendar{EndNs: units.Draw(t, "end"), NextEndNs: -units.Draw(t, "next")}
		}
	case engine.OpIncr:
		op.Incr = &engine.Incr{
			By: -units.Draw(t, "by"), Lower: -1 << 63, Upper: units.Draw(t, "upper"),
			Saturate: rapid.Bool().Draw(t, "saturate"),
			Expire:   engine.ExpireIn, ExpireNs: -3, OnlyIfNew: rapid.Bool().Draw(t, "new"),
		}
	}
	if op.Code == engine.OpScript {
		op.Script = &engine.Script{ID: rapid.SampledFrom(
			[]engine.ScriptID{engine.RedisRateAllowAtMost, engine.TextAppend, engine.TextSwap}).Draw(t, "script")}
		for i := range op.Script.ID.TextsOf() {
			op.Script.Values[i] = rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "value")
		}
		for i := range op.Script.Args {
			op.Script.Args[i] = rapid.Float64Range(-1e300, 1e300).Draw(t, "arg")
		}
	}
	return op
}

func genPolicy(t *rapid.T) *engine.Policy {
	p := &engine.Policy{
		Shadow: rapid.Bool().Draw(t, "shadow"), Disabled: rapid.Bool().Draw(t, "disabled"),
		RetryNs:  rapid.Int64Range(0, engine.MaxWindowNs).Draw(t, "retry"),
		Reserved: rapid.Int64Range(0, engine.MaxReserved).Draw(t, "reserved"),
	}
	zone := &engine.Zone{Name: "Europe/Berlin",
		Changes: []engine.ZoneChange{{AtSec: -1, OffsetSec: 3600}, {AtSec: 1 << 33, OffsetSec: -7200}}}
	for range rapid.IntRange(1, engine.MaxPolicyLimits).Draw(t, "limits") {
		p.Limits = append(p.Limits, rapid.SampledFrom([]engine.PolicyLimit{
			{Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 3, PerNs: 7}, Max: 5},
				WaitNs: 9},
			{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Month, Max: 5}, Zone: zone},
			{Limit: engine.Limit{Algorithm: engine.SlidingLog, WindowNs: 5, Max: 5}},
			{Limit: validLimits["attempts"]},
		}).Draw(t, "limit"))
	}
	return p
}

func genLimit(t *rapid.T) engine.Limit {
	window := rapid.Int64Range(1, engine.MaxWindowNs)
	l := engine.Limit{
		Algorithm: engine.Algorithm(rapid.IntRange(int(engine.TokenBucket), int(engine.Strike)).Draw(t, "algorithm")),
		Max:       rapid.Int64Range(1, engine.MaxLogUnits).Draw(t, "max"),
	}
	switch l.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		l.Rate = engine.Rate{Units: window.Draw(t, "units"), PerNs: window.Draw(t, "per")}
		l.Rate.Units = min(l.Rate.Units, engine.MaxUnits)
	case engine.Strike:
		l.Steps = engine.MakeSteps([]engine.Step{{Threshold: 1, PenaltyNs: 1, Delay: rapid.Bool().Draw(t, "delay")},
			{Threshold: 5, PenaltyNs: window.Draw(t, "penalty")}})
		l.Strikes = engine.StrikeMode(rapid.IntRange(0, int(engine.Attempts|engine.Extend)).Draw(t, "strikes"))
		l.WindowNs = window.Draw(t, "window")
	case engine.FixedWindow:
		l.Mode = engine.WindowMode(rapid.IntRange(int(engine.Aligned), int(engine.Forever)).Draw(t, "mode"))
		l.WindowNs = window.Draw(t, "window")
	case engine.Concurrency:
	default:
		l.WindowNs = window.Draw(t, "window")
	}
	return l
}

func TestCallsAreEncodedAndDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			enc   wire.Encoder
			body  []byte
			calls []wire.Call
		)
		for range rapid.IntRange(0, 4).Draw(t, "calls") {
			c := wire.Call{Ops: rapid.SliceOfN(rapid.Custom(genOp), 0, 5).Draw(t, "ops"),
				Atomic: rapid.Bool().Draw(t, "atomic")}
			if len(c.Ops) > 1 && rapid.Bool().Draw(t, "repeat") {
				c.Ops = append(c.Ops, c.Ops[0], c.Ops[len(c.Ops)-1])
			}
			body, calls = enc.Call(body, c.Ops, c.Atomic), append(calls, c)
		}
		var d wire.Decoder
		d.Reset(body)
		for _, want := range calls {
			got, more, err := d.Next()
			if err != nil || !more {
				t.Fatalf("call lost: %v", err)
			}
			require.Equal(t, want.Atomic, got.Atomic)
			require.Len(t, got.Ops, len(want.Ops))
			for i := range want.Ops {
				require.Equal(t, want.Ops[i], got.Ops[i])
			}
		}
		_, more, err := d.Next()
		require.NoError(t, err)
		require.False(t, more)
	})
}

// TestInvalidOpIsNeverLogged checks that an operation which the engine cannot compute is refused before it reaches the
// log.
func TestInvalidOpIsNeverLogged(t *testing.T) {
	pair := func(policy, key string) engine.Pair { return engine.Pair{Policy: []byte(policy), Key: []byte(key)} }
	check := engine.Op{Code: engine.OpCheck, Key: []byte("k"), Text: []byte("p"), Also: []engine.Pair{pair("q", "k")}}
	require.True(t, wire.Valid(&check))
	for _, also := range [][]engine.Pair{
		{pair("p", "k")}, {pair("q", "k"), pair("q", "k")}, {pair("", "k")}, {pair("q", "")},
		{pair("q", "policy|p|0|k")}, make([]engine.Pair, engine.MaxPairs),
	} {
		bad := check
		bad.Also = also
		require.False(t, wire.Valid(&bad), "%s", also)
	}
	held := engine.Op{Code: engine.OpReserve, Key: []byte("k"), Text: []byte("p"), ID: []byte("id"), Cost: 1,
		TTLNs: 1, Also: check.Also}
	require.True(t, wire.Valid(&held))
	for name, spoil := range map[string]func(op *engine.Op){
		"no id": func(op *engine.Op) { op.ID = nil }, "a part": func(op *engine.Op) { op.Partial = true },
		"no units": func(op *engine.Op) { op.Cost = 0 }, "no ttl": func(op *engine.Op) { op.TTLNs = 0 },
		"a ttl too long": func(op *engine.Op) { op.TTLNs = engine.MaxWindowNs + 1 },
		"a pair twice":   func(op *engine.Op) { op.Also = []engine.Pair{pair("p", "k")} },
		"too many bytes": func(op *engine.Op) {
			op.Also = []engine.Pair{pair("p", strings.Repeat("j", 500)), pair("q", strings.Repeat("j", 300))}
		},
	} {
		bad := held
		spoil(&bad)
		require.False(t, wire.Valid(&bad), name)
	}
	require.True(t, wire.Valid(&engine.Op{Code: engine.OpCommit, Key: []byte("policy|p|0|k"), Cost: 1}),
		"an id may consist of any bytes")
	require.False(t, wire.Valid(
		&engine.Op{Code: engine.OpCommit, Key: bytes.Repeat([]byte("i"), engine.MaxIDLen+1), Cost: 1}))
	limit := engine.Limit{Algorithm: engine.SlidingCounter, WindowNs: 1, Max: 1}
	own := engine.Op{Key: []byte("policy|p|0|k"), Limit: limit, Cost: 1}
	require.False(t, wire.Valid(&own), "a take must not name a policy's limiter")
	own.Code = engine.OpReset
	require.True(t, wire.Valid(&own))
	for _, change := range []*engine.PolicyChange{
		nil, {Do: 200}, {Do: engine.PolicySet}, {Terms: &engine.Policy{}},
		{Do: engine.PolicyDelete, Terms: &engine.Policy{}},
		{Terms: &engine.Policy{Limits: []engine.PolicyLimit{{Limit: engine.Limit{Algorithm: engine.Strike}}}}},
		{Do: engine.PolicyOverride, Terms: &engine.Policy{Overrides: []engine.Override{{UntilNs: 1}}}},
	} {
		require.False(t, wire.Valid(&engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: change}), "%+v", change)
	}
}

func TestDecisionsAreEncodedAndDecoded(t *testing.T) {
	want := []engine.Decision{{}, {Status: engine.UnknownPolicy, Pair: 3, Part: engine.NoPart},
		{Status: engine.WrongType}, {Status: engine.OK, Value: "\x00 state"},
		{Allowed: 1, Remaining: 1 << 53, RetryMs: -1, ResetMs: 1 << 62, Limit: -7}}
	b := wire.AppendDecisions(nil, want, wire.Version)
	got := make([]engine.Decision, len(want))
	require.NoError(t, wire.ReadDecisions(b, got))
	require.Equal(t, want, got)
	for i := range b {
		require.ErrorIs(t, wire.ReadDecisions(b[:i], got), wire.ErrMalformed)
	}
	require.ErrorIs(t, wire.ReadDecisions(append(b, 0), got), wire.ErrMalformed)
}

// TestLockoutsComeBack checks that a reader of the new format gets the pairs that a decision locked out. An older
// reader only gets the parts it expects.
func TestLockoutsComeBack(t *testing.T) {
	want := []engine.Decision{{Allowed: 1}, {Allowed: 1, Locked: 1 << 15}, {}, {Locked: 3}}
	b := wire.AppendDecisions(nil, want, wire.Version)
	got := make([]engine.Decision, len(want))
	require.NoError(t, wire.ReadDecisions(b, got))
	require.Equal(t, want, got)
	bare := slices.Clone(want)
	for i := range bare {
		bare[i].Locked = 0
	}
	require.Equal(t, wire.AppendDecisions(nil, bare, wire.Version), wire.AppendDecisions(nil, want, wire.Oldest))
	end := wire.AppendDecisions(nil, bare, wire.Version)
	for _, bad := range [][]byte{{4, 1}, {1, 0}, {1}, {1, 1, 1, 1}, {3, 1, 1, 1}, {0, 0x80, 0x80, 4}} {
		require.ErrorIs(t, wire.ReadDecisions(slices.Concat(end, bad), got), wire.ErrMalformed, "%v", bad)
	}
}

// FuzzBody checks that decoding any bytes of another node ends without a panic, and the engine can decide the result.
func FuzzBody(f *testing.F) {
	var enc wire.Encoder
	f.Add(enc.Call(nil, []engine.Op{{
		Key: []byte("k"), Cost: 3, ID: []byte("id"),
		Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 2}, Max: 3},
	}, {Code: engine.OpReset, Key: []byte("k"), Cost: 1}}, true))
	f.Add(enc.Call(nil, []engine.Op{
		{Code: engine.OpPolicy, Key: []byte("p"),
			Policy: &engine.PolicyChange{Terms: &engine.Policy{Limits: []engine.PolicyLimit{
				{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Day, Max: 2},
					Zone: &engine.Zone{Name: "UTC"}},
			}}}},
		{Code: engine.OpCheck, Key: []byte("k"), Text: []byte("p"), Cost: 2,
			Also: []engine.Pair{{Policy: []byte("p"), Key: []byte("j")}}},
	}, true))
	f.Add(enc.Call(nil, []engine.Op{
		{Code: engine.OpPolicy, Key: []byte("p"),
			Policy: &engine.PolicyChange{Terms: &engine.Policy{Limits: []engine.PolicyLimit{
				{Limit: engine.Limit{Algorithm: engine.SlidingLog, WindowNs: 1e9, Max: 9}},
			}}}},
		{Code: engine.OpReserve, Key: []byte("k"), Text: []byte("p"), Cost: 2, TTLNs: 5, ID: []byte("id"),
			Also: []engine.Pair{{Policy: []byte("p"), Key: []byte("j")}}},
		{Code: engine.OpCommit, Key: []byte("id"), Cost: 3}, {Code: engine.OpCancel, Key: []byte("id"), Cost: 1},
		{Code: engine.OpBlockEverywhere, Key: []byte("k"), Cost: 1, TTLNs: 5, Text: []byte("why")},
	}, true))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, body []byte) {
		var d wire.Decoder
		d.Reset(body)
		table := engine.NewTable(engine.Options{Shards: 1})
		for {
			call, more, err := d.Next()
			if err != nil || !more {
				return
			}
			out := make([]engine.Decision, len(call.Ops))
			table.Decide(engine.Stamp{NowNs: 1e9}, call.Ops, out)
			for i := range out {
				if out[i].Allowed < 0 {
					t.Fatalf("granted %d", out[i].Allowed)
				}
			}
		}
	})
}
