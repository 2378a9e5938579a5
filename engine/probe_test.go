package engine_test

import (
	"fmt"
	"testing"

	"github.com/weir-project/weir/engine"
)

// probe is a table on which one limit is asked at chosen times.
type probe struct {
	table   *engine.Table
	nowNs   int64
	holders int // gives every acquire another holder
}

func newProbe() *probe {
	return &probe{table: engine.NewTable(engine.Options{Shards: 1}), nowNs: 1_700_000_000e9}
}

func (b *probe) do(op engine.Op) engine.Decision {
	if op.Key == nil {
		op.Key = []byte("key")
	}
	return decideOne(b.table, step{engine.Stamp{NowNs: b.nowNs}, op})
}

func (b *probe) take(l engine.Limit, n int64) engine.Decision {
	b.holders++
	return b.do(engine.Op{Limit: l, Cost: n, Text: fmt.Append(nil, b.holders), TTLNs: 60e9})
}

// admits asks n times for one unit at one instant, and counts the admissions.
func (b *probe) admits(l engine.Limit, n int) (admitted int64) {
	for range n {
		admitted += b.take(l, 1).Allowed
	}
	return admitted
}

func bucketOf(units, perNs, burst int64) engine.Limit {
	return engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: units, PerNs: perNs}, Max: burst}
}

func windowOf(a engine.Algorithm, windowNs, most int64) engine.Limit {
	return engine.Limit{Algorithm: a, WindowNs: windowNs, Max: most}
}

// allOfTen has each algorithm that counts, with a limit of ten.
var allOfTen = []engine.Limit{
	bucketOf(1, 6e9, 10),
	{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: 6e9}, Max: 9},
	windowOf(engine.FixedWindow, 60e9, 10),
	{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: 60e9, Max: 10},
	{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10},
	windowOf(engine.SlidingLog, 60e9, 10),
	windowOf(engine.SlidingCounter, 60e9, 10),
	windowOf(engine.Concurrency, 0, 10),
}

func forAllOfTen(t *testing.T, test func(t *testing.T, b *probe, l engine.Limit)) {
	for _, l := range allOfTen {
		t.Run(fmt.Sprintf("%v/%d", l.Algorithm, l.Mode), func(t *testing.T) { test(t, newProbe(), l) })
	}
}
