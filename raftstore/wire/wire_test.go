package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

func TestHeaderComesBack(t *testing.T) {
	h := wire.Header{
		Kind: wire.Clear, Term: 7, Nonce: 1 << 63, At: engine.Stamp{NowNs: 1 << 61, WallOffsetNs: -5},
		CheckIndex: 9, CheckHash: 1<<64 - 1,
	}
	b := append(make([]byte, wire.HeaderLen), "body"...)
	h.Put(b)
	got, body, err := wire.Split(b)
	require.NoError(t, err)
	require.Equal(t, h, got)
	require.Equal(t, "body", string(body))
}

func TestHeaderRefuses(t *testing.T) {
	newer := make([]byte, wire.HeaderLen)
	newer[0] = wire.Version + 1
	_, _, err := wire.Split(newer)
	require.ErrorIs(t, err, wire.ErrVersion)
	for _, b := range [][]byte{nil, {wire.Version}, make([]byte, wire.HeaderLen), {wire.Version, 200}} {
		_, _, err := wire.Split(b)
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
}

// genOp draws an operation that the server might make.
func genOp(t *rapid.T) engine.Op {
	units := rapid.Int64Range(0, engine.MaxUnits)
	op := engine.Op{
		Code: engine.OpCode(rapid.IntRange(int(engine.OpTake), int(engine.OpScript)).Draw(t, "code")),
		Key:  rapid.SliceOfN(rapid.Byte(), 1, engine.MaxKeyLen).Draw(t, "key"),
		Cost: units.Draw(t, "cost"), Partial: rapid.Bool().Draw(t, "partial"), Dry: rapid.Bool().Draw(t, "dry"),
		WaitNs: rapid.Int64Range(0, engine.Never).Draw(t, "wait"), TTLNs: rapid.Int64Range(0, engine.Never).Draw(t, "ttl"),
		ID: rapid.SliceOfN(rapid.Byte(), 0, engine.MaxIDLen).Draw(t, "id"), Text: rapid.SliceOfN(rapid.Byte(), 1, engine.MaxHolderLen).Draw(t, "text"),
	}
	if len(op.ID) == 0 {
		op.ID = nil
	}
	switch op.Code {
	case engine.OpTake:
		op.Limit = genLimit(t)
		if op.Limit.Mode >= engine.Day && op.Limit.Mode <= engine.Year {
			op.Calendar = &engine.Calendar{EndNs: units.Draw(t, "end"), NextEndNs: -units.Draw(t, "next")}
		}
	case engine.OpIncr:
		op.Incr = &engine.Incr{
			By: -units.Draw(t, "by"), Lower: -1 << 63, Upper: units.Draw(t, "upper"), Saturate: rapid.Bool().Draw(t, "saturate"),
			Expire: engine.ExpireIn, ExpireNs: -3, OnlyIfNew: rapid.Bool().Draw(t, "new"),
		}
	}
	if op.Code == engine.OpScript {
		op.Script = &engine.Script{ID: engine.RedisRateAllowAtMost}
		for i := range op.Script.Args {
			op.Script.Args[i] = rapid.Float64Range(-1e300, 1e300).Draw(t, "arg")
		}
	}
	return op
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
		l.Steps = engine.MakeSteps([]engine.Step{{Threshold: 1, PenaltyNs: 1}, {Threshold: 5, PenaltyNs: window.Draw(t, "penalty")}})
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

func TestCallsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			enc   wire.Encoder
			body  []byte
			calls []wire.Call
		)
		for range rapid.IntRange(0, 4).Draw(t, "calls") {
			c := wire.Call{Ops: rapid.SliceOfN(rapid.Custom(genOp), 0, 5).Draw(t, "ops"), Atomic: rapid.Bool().Draw(t, "atomic")}
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

func TestDecisionsComeBack(t *testing.T) {
	want := []engine.Decision{{}, {Status: engine.WrongType}, {Allowed: 1, Remaining: 1 << 53, RetryMs: -1, ResetMs: 1 << 62, Limit: -7}}
	b := wire.AppendDecisions(nil, want)
	got := make([]engine.Decision, len(want))
	require.NoError(t, wire.ReadDecisions(b, got))
	require.Equal(t, want, got)
	for i := range b {
		require.ErrorIs(t, wire.ReadDecisions(b[:i], got), wire.ErrMalformed)
	}
	require.ErrorIs(t, wire.ReadDecisions(append(b, 0), got), wire.ErrMalformed)
}

// FuzzBody: whatever another node sends, decoding ends without a panic and the
// engine can carry out what comes of it.
func FuzzBody(f *testing.F) {
	var enc wire.Encoder
	f.Add(enc.Call(nil, []engine.Op{{
		Key: []byte("k"), Cost: 3, ID: []byte("id"),
		Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 2}, Max: 3},
	}, {Code: engine.OpReset, Key: []byte("k"), Cost: 1}}, true))
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
