package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

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
		d := decideAt(table, benchHoldAt, reserve(fmt.Sprintf("open-%09d", i), 1, 3600e9, "p", "k"))
		if d.Allowed == 0 {
			panic(fmt.Sprintf("hold %d: %+v", i, d))
		}
	}
	return table
}

var benchHoldAt = engine.Stamp{NowNs: 1e18}

var benchHoldLimits = map[string]engine.Limit{
	"bucket": {Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e12}, Max: 1e12},
	"fixed":  {Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1e12},
}

// holdCycles reserves, extends and commits holds beside others that are open: always the newest hold, or the oldest,
// which is then replaced.
type holdCycles struct {
	table  *engine.Table
	at     engine.Stamp
	ids    []string
	oldest bool
	n      int
	out    [1]engine.Decision
	took   []float64 // nanoseconds of a cycle
}

func (h *holdCycles) do(op engine.Op) {
	if h.table.DecideAtomic(h.at, []engine.Op{op}, h.out[:]); h.out[0].Allowed == 0 {
		panic(fmt.Sprintf("%+v", h.out[0]))
	}
}

// turn makes a few cycles, and notes their time.
func (h *holdCycles) turn() {
	const cycles = 50
	begun := time.Now()
	for range cycles {
		h.at.NowNs += 1000
		id := fmt.Sprintf("new-%010d", h.n)
		with := id
		if h.do(reserve(id, 1, 3600e9, "p", "k")); h.oldest {
			at := h.n % len(h.ids)
			with, h.ids[at] = h.ids[at], id
		}
		h.n++
		more := engine.Op{Code: engine.OpExtend, Key: []byte(with), Cost: 1, ID: engine.ExtensionID(1)}
		more.Bind()
		h.do(more)
		h.do(commit(with, 1))
	}
	h.took = append(h.took, float64(time.Since(begun))/cycles)
}

// BenchmarkOpenHolds compares RESERVE, EXTEND and COMMIT beside many open holds with the same beside ten, by turns. It
// reports the median of the turns, which other programs on the machine hardly change, and the rate beside many as a part
// of the rate beside ten.
func BenchmarkOpenHolds(b *testing.B) {
	for _, name := range []string{"bucket", "fixed"} {
		for _, oldest := range []bool{false, true} {
			for _, n := range []int{900, 60_000, 1_000_000} {
				b.Run(fmt.Sprintf("%s/oldest=%v/%d", name, oldest, n), func(b *testing.B) {
					var both [2]*holdCycles
					for i, open := range []int{10, n} {
						h := &holdCycles{at: benchHoldAt, oldest: oldest}
						h.table = openHolds(open, engine.Options{Shards: 1, IDLifetimeNs: 1e6}, benchHoldLimits[name])
						for k := range open {
							h.ids = append(h.ids, fmt.Sprintf("open-%09d", k))
						}
						both[i] = h
					}
					b.ResetTimer()
					for range b.N {
						both[0].turn()
						both[1].turn()
					}
					for _, h := range both {
						slices.Sort(h.took)
					}
					few, many := both[0].took[b.N/2], both[1].took[b.N/2]
					b.ReportMetric(few, "ns/cycle-of-10")
					b.ReportMetric(many, "ns/cycle")
					b.ReportMetric(few/many, "of-the-rate")
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
				bound := table.Stats(benchHoldAt).MemoryBytes - before.Stats(benchHoldAt).MemoryBytes
				b.ReportMetric(float64(bound)/float64(n), "bound-bytes/hold")
			}
		})
	}
}

// BenchmarkStopsOfManyHolds reports how long decisions on a limiter with many holds wait: for the longest step of a save,
// for the first decision after a start, and for the release of all holds, which end at once.
func BenchmarkStopsOfManyHolds(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				slow := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e12}, Max: 1e12}
				table := openHolds(n, engine.Options{Shards: 1, TrackChanges: true}, slow)
				again := engine.NewTable(engine.Options{Shards: 1, TrackChanges: true})
				longest, all, since := time.Duration(0), time.Duration(0), time.Now()
				_ = table.Drain(256, func(changes []engine.Change) error {
					step := time.Since(since)
					longest, all = max(longest, step), all+step
					for _, c := range changes {
						if err := loadOne(again, benchHoldAt, c.Key, c.Value); err != nil {
							b.Fatal(err)
						}
					}
					since = time.Now()
					return nil
				})
				b.ReportMetric(float64(all)/1e6, "ms/save")
				b.ReportMetric(float64(longest)/1e6, "ms/longest-step")
				since = time.Now()
				decideAt(again, benchHoldAt, reserve("one", 1, 1e9, "p", "k"))
				b.ReportMetric(float64(time.Since(since))/1e6, "ms/first-decision")
				since = time.Now()
				decideAt(again, engine.Stamp{NowNs: benchHoldAt.NowNs + 3600e9}, check(1, "p", "k"))
				b.ReportMetric(float64(time.Since(since))/1e6, "ms/release-of-all")
			}
		})
	}
}
