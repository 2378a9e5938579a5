package engine

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arena"
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
//
// A replica only compacts: what it evicts and what it lets in is decided by the leader.
type levels struct {
	soft, high, urgent, bound int64
	share                     int64 // of one shard, of soft
}

const (
	softNum, softDen = 7, 8
	slackDen         = 16 // the part of the bound above high: half of what is above soft

	// minShardBytes is the least share of the bound that a shard may have: some pages for
	// slots of every length. A replica's share is larger. The leader evicts by what its own
	// table takes, and half of a page for each shard and length is a twentieth of this: so
	// much memory of nodes with more shards than the leader may exceed that of the leader.
	minShardBytes        = 1 << 20
	minReplicaShardBytes = 4 << 20
)

func (o *Options) levels() levels {
	l := levels{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	bound := o.MaxMemoryBytes
	if bound == 0 {
		return l
	}
	slack := bound / slackDen
	l.high, l.urgent = bound-slack, bound-slack/2
	if o.WhenFull != Replica {
		l.soft, l.bound = bound/softDen*softNum, bound
		l.share = l.soft / int64(o.Shards)
	}
	return l
}

// shardsWithin is how many of the shards have their least share of the bound each.
func (o *Options) shardsWithin() int {
	least, shards := int64(minShardBytes), o.Shards
	if o.WhenFull == Replica {
		least = minReplicaShardBytes
	}
	for o.MaxMemoryBytes > 0 && shards > 1 && o.MaxMemoryBytes/int64(shards) < least {
		shards /= 2
	}
	return shards
}

// closed reports whether memory may grow no more.
func (t *Table) closed() bool {
	used := t.used.Load() + arena.PageBytes
	return used > t.levels.bound || t.opts.WhenFull == Deny && used > t.levels.soft
}
