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
// openHolds is a table with holds that are open on one limiter, as long as the benchmark runs.
func openHolds(n int, o engine.Options, l engine.Limit) *engine.Table {
	table := engine.NewTable(o)
	decideAt(table, benchHoldAt, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{{Limit: l}}}))
	for i := range n {
		if d := decideAt(table, benchHoldAt, reserve(fmt.Sprintf("open-%09d", i), 1, 3600e9, "p", "k")); d.Allowed == 0 {
			panic(fmt.Sprintf("hold %d: %+v", i, d))
		}
	}
	return table
}

var benchHoldAt = engine.Stamp{NowNs: 1e18}

var benchHoldLimits = map[string]engine.Limit{
	"bucket": {Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1e9, PerNs: 1e9}, Max: 1e12},
	"fixed":  {Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1e12},
}

// BenchmarkOpenHolds reserves, extends and commits a hold beside others that are open: the newest hold, or the oldest,
// which is then reserved again.
func BenchmarkOpenHolds(b *testing.B) {
	for _, name := range []string{"bucket", "fixed"} {
		for _, which := range []string{"newest", "oldest"} {
			for _, n := range []int{10, 60_000, 10, 60_000} {
				b.Run(fmt.Sprintf("%s/%s/%d", name, which, n), func(b *testing.B) {
					table, at := openHolds(n, engine.Options{Shards: 1, IDLifetimeNs: 1e6}, benchHoldLimits[name]), benchHoldAt
					ids := make([]string, n)
					for i := range ids {
						ids[i] = fmt.Sprintf("open-%09d", i)
					}
					out, next := make([]engine.Decision, 1), 0
					do := func(op engine.Op) {
						if table.DecideAtomic(at, []engine.Op{op}, out); out[0].Allowed == 0 {
							b.Fatal(out[0])
						}
					}
					b.ResetTimer()
					for i := range b.N {
						at.NowNs += 1000
						id, with := fmt.Sprintf("new-%010d", i), ""
						if do(reserve(id, 1, 3600e9, "p", "k")); which == "newest" {
							with = id
						} else {
							with, ids[next] = ids[next], id
							next = (next + 1) % n
						}
						more := engine.Op{Code: engine.OpExtend, Key: []byte(with), Cost: 1, ID: engine.ExtensionID(1)}
						more.Bind()
						do(more)
						do(commit(with, 1))
					}
				})
			}
		}
	}
}

// BenchmarkBytesOfHold reports the memory that open holds of 16 bytes on one limiter take, without the index.
func BenchmarkBytesOfHold(b *testing.B) {
	for _, n := range []int{10, 900, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				table := openHolds(n, engine.Options{Shards: 1}, benchHoldLimits["bucket"])
				before := openHolds(0, engine.Options{Shards: 1}, benchHoldLimits["bucket"])
				_, with := table.Usage()
				_, without := before.Usage()
				b.ReportMetric(float64(with-without)/float64(n), "bytes/hold")
				b.ReportMetric(float64(table.Stats(benchHoldAt).MemoryBytes-before.Stats(benchHoldAt).MemoryBytes)/float64(n),
					"bound-bytes/hold")
			}
		})
	}
}
