package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
)

// read is one answered read of a bucket that never refills, in true time since the start.
type read struct {
	called, back time.Duration
	used         int64
	stale        bool          // it asked no other node
	age          time.Duration // the age that it reports, if stale
}

// look reads a counted key at some node: the committed state after a ReadIndex round, or the node's own state
// (stale).
func (c *client) look() {
	p := c.sim.anyProcess(c.rng)
	if p == nil {
		return
	}
	key := c.key([]byte{counted, tight}[c.rng.IntN(2)], 3)
	r := read{called: c.sim.elapsed(), stale: c.rng.IntN(3) == 0}
	err := p.do(func() (err error) {
		if r.stale {
			r.age = p.node.StaleFor() // taken before the read, so the state that is read is not older
		} else if err = p.node.ReadIndex(); err != nil {
			return err
		}
		info, _ := p.node.Inspect([]byte(key))
		r.used = info.Used
		return nil
	})
	r.back = c.sim.elapsed()
	if r.back-r.called > maxCall {
		c.sim.violation("a read took %v", r.back-r.called)
	}
	if err == nil {
		c.sim.history.addRead(key, r)
	}
}

// checkReads compares reads of a bucket that only fills up with the acknowledged operations. A read counts every unit
// that was acknowledged before its call. A stale read may lack the units of its age. No read counts a unit that was
// requested after it. Consecutive linearizable reads do not go back.
func checkReads(key string, records []record, reads []read) (violations []string) {
	takes := slices.DeleteFunc(
		distinct(records), func(r record) bool { return r.op.Code != engine.OpTake || r.outcome == refused })
	for _, r := range reads {
		var low, high int64
		for i := range takes {
			if takes[i].back < r.called-r.age {
				low += takes[i].taken()
			}
			if takes[i].called <= r.back {
				high += takes[i].op.Cost
			}
		}
		if r.used < low || r.used > high {
			violations = append(violations,
				say("%s: a read at %v (stale %v, age %v) counts %d units, which should be %d to %d", key, r.back,
					r.stale, r.age, r.used, low, high))
		}
	}
	return append(violations, checkReadOrder(key, reads)...)
}

// checkReadOrder finds a linearizable read that lacks units which an earlier read counted.
func checkReadOrder(key string, reads []read) (violations []string) {
	reads = slices.DeleteFunc(slices.Clone(reads), func(r read) bool { return r.stale })
	byCall, byReturn := slices.Clone(reads), reads
	slices.SortFunc(byCall, func(a, b read) int { return cmp.Compare(a.called, b.called) })
	slices.SortFunc(byReturn, func(a, b read) int { return cmp.Compare(a.back, b.back) })
	var most int64
	for _, r := range byCall {
		for ; len(byReturn) > 0 && byReturn[0].back < r.called; byReturn = byReturn[1:] {
			most = max(most, byReturn[0].used)
		}
		if r.used < most {
			violations = append(violations,
				say("%s: a read at %v counts %d units after another had counted %d", key, r.back, r.used, most))
		}
	}
	return violations
}
