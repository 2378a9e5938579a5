package engine

import (
	"math"
	"sync/atomic"
)

// Memory is counted in pages, index segments and limits, for the whole table. With
// Options.MaxMemoryBytes an operation answers to these levels of it:
//
//   - From soft on, an operation that adds an entry evicts others that take as much
//     (makeRoom). What they leave are free slots here and there.
//   - From high on, reclaim makes free slots into free pages before each operation, and
//     evicts where too few slots are free.
//   - From urgent on, reclaim does so until memory is below that.
//   - At the bound nothing is added. An operation that has begun needs the slack between
//     high and the bound: nothing is moved while it knows where its entries are.
type levels struct {
	soft, high, urgent, bound int64
	share                     int64 // of one shard, of soft
}

const (
	softNum, softDen = 7, 8
	slackDen         = 16 // the part of the bound above high: half of what is above soft

	// minShardBytes is the least share of the bound that a shard may have: some pages for
	// slots of every length.
	minShardBytes = 1 << 20
)

func levelsOf(bound int64, shards int) levels {
	if bound == 0 {
		return levels{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	}
	slack := bound / slackDen
	soft := bound / softDen * softNum
	return levels{soft: soft, high: bound - slack, urgent: bound - slack/2, bound: bound, share: soft / int64(shards)}
}

// shardsWithin is how many of so many shards have minShardBytes of a bound each.
func shardsWithin(bound int64, shards int) int {
	for bound > 0 && shards > 1 && bound/int64(shards) < minShardBytes {
		shards /= 2
	}
	return shards
}

// closed reports whether memory may grow no more.
func (t *Table) closed() bool {
	used := t.used.Load() + pageBytes
	return used > t.levels.bound || t.opts.WhenFull == Deny && used > t.levels.soft
}

// meter counts bytes of one shard, and of all.
type meter struct {
	own atomic.Int64
	all *atomic.Int64
}

func newMeter() *meter { return &meter{all: new(atomic.Int64)} }

func (m *meter) add(n int64) {
	m.own.Add(n)
	m.all.Add(n)
}
