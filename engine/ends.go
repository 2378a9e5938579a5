package engine

import (
	"cmp"
	"slices"

	"github.com/weir-project/weir/engine/internal/store"
)

// A hold that ends by itself under a policy with Record writes events like one that is committed. Each node notices the
// end at another moment, so the log decides when the events are written: the leader, or a server that runs alone, asks
// for such holds (Ended) and carries out an OpEnd for each. An OpCommit that comes first writes the events, too. Until
// then the record of the hold is not idle. The record has the mark Records from the OpReserve on, or from an OpExtend:
// a policy that gets Record later must not bring back holds that some replicas have dropped already.

// MaxEnds is how many holds the caller of Ended should ask for, and so bounds the time of one batch to milliseconds.
const MaxEnds = 1024

// Ended returns an OpEnd for about most holds that have ended and need one, in the order of their ends. It finds an end
// when Collect is called, some milliseconds later or up to some seconds.
func (t *Table) Ended(most int) (ops []Op) {
	type ended struct {
		ns int64
		id []byte
	}
	var list []ended
	t.eachShard(Stamp{}, func(s *shard) {
		s.EndedHolds(1+most/len(t.shards), func(endsNs int64, id []byte) {
			list = append(list, ended{endsNs, slices.Clone(id)})
		})
	})
	slices.SortFunc(list, func(a, b ended) int { return cmp.Or(cmp.Compare(a.ns, b.ns), slices.Compare(a.id, b.id)) })
	for _, x := range list {
		ops = append(ops, Op{Code: OpEnd, Key: x.id, Cost: 1})
	}
	return ops
}

// endHold carries out an OpEnd.
func (s *shard) endHold(op *Op, d *Decision) bool {
	_, c := s.t.openHold(op.Key)
	if !c.Live {
		return false
	}
	x := store.ReadHold(c.Entry.State())
	if x.Phase != store.HoldOpen || !x.Records || s.NowNs < x.EndsNs {
		return false
	}
	s.tellEnd(op.Key, &x)
	d.Allowed = 1
	s.writeHold(&c, &x)
	return true
}

// tellEnd writes the events of a hold that has ended by itself, unless they are written or it needs none.
func (s *shard) tellEnd(id []byte, x *store.Hold) {
	if x.Phase == store.HoldOpen && x.Records {
		s.tellHold(EventExpired, id, x, x.UsedAtEnd())
		x.Phase = store.HoldExpired
	}
}

// records reports whether a policy among the pairs of a hold has Record.
func (s *shard) records(pairs []store.HoldPair) bool {
	return s.t.policies.Load().tells && slices.ContainsFunc(pairs, func(pair store.HoldPair) bool {
		p := s.policy(pair.Policy)
		return p != nil && p.Record
	})
}
