package engine_test

import (
	"fmt"
	"testing"

	"github.com/weir-project/weir/engine"
)

// BenchmarkHold measures RESERVE and COMMIT of holds that one policy pays, and of holds with alternatives of which the
// first, the second or both pay.
func BenchmarkHold(b *testing.B) {
	for name, first := range map[string]int64{"one": -1, "first": 1e9, "second": 0, "split": 3} {
		b.Run(name, func(b *testing.B) { benchHold(b, first) })
	}
}

func benchHold(b *testing.B, first int64) {
	table := engine.NewTable(engine.Options{TrackChanges: true})
	policy := func(name string, max int64) {
		decideAt(table, engine.Stamp{NowNs: 1e18}, setPolicy(name, engine.Policy{Limits: []engine.PolicyLimit{
			{Limit: engine.Limit{Algorithm: engine.FixedWindow, WindowNs: 3600e9, Max: max}}}}))
	}
	policy("allowance", max(first, 1))
	policy("credits", 1e9)
	if first == 0 {
		decideAt(table, engine.Stamp{NowNs: 1e18}, check(1, "allowance", "k"))
	}
	op := engine.Op{Code: engine.OpReserve, Text: []byte("credits"), Key: []byte("k"), Cost: 5, TTLNs: 60e9}
	if first >= 0 {
		op.Text, op.Also = []byte("allowance"), []engine.Pair{{Policy: []byte("credits"), Key: []byte("k")}}
		op = orElse(op, true, 1)
	}
	ids, out := make([][]byte, 1000), make([]engine.Decision, 2)
	for i := range ids {
		ids[i] = fmt.Append(nil, "id", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		op.ID = ids[i%len(ids)]
		settle := engine.Op{Code: engine.OpCommit, Key: op.ID}
		table.Decide(engine.Stamp{NowNs: 1e18 + int64(i)*1e8}, []engine.Op{op, settle}, out)
		if out[0].Allowed == 0 || out[1].Allowed == 0 {
			b.Fatal(out)
		}
	}
}
