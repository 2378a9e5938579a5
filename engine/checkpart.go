package engine

import "github.com/weir-project/weir/engine/internal/store"

// part is one limit of a check. The next check reuses its memory.
type part struct {
	s        *shard
	c        store.Cell
	of       *PolicyLimit
	op       Op // the take of this limit alone; unused fields stay zero
	d        Decision
	outcome  outcome // if previewed: the state of the limiter after the take
	reserved int64   // units of the limit that this check may not take
	prefix   string  // of op.Key
	moves    uint64  // Store.Moves when c was opened
	pair     uint8
	limit    uint8 // the number of the limit in its policy
	fits     bool  // the limit has the units

	previewed bool // outcome and d are the result of the take
}

// setUp prepares the part's take for a check at the shard's time.
func (x *part) setUp(op *Op) {
	x.op.Partial, x.op.Dry, x.op.WaitNs, x.op.Calendar = false, false, 0, nil
	if !op.Partial && !op.Else.Split() {
		x.op.WaitNs = x.of.WaitNs
	}
	if x.of.Zone != nil {
		x.op.Calendar = x.of.Zone.Window(x.s.NowNs+x.s.OffsetNs, x.op.Limit.Mode)
	}
}

// find finds the limiter of the part's limit for a key with hash h.
func (x *part) find(h uint64, p *Policy, key []byte) {
	x.c = store.Cell{Hash: limiterHash(h, p.hash, int(x.limit)), Reserve: p.bundleBytes}
	x.setKey(p, key)
	x.open()
}

// setKey sets the name of the part's limiter for a key.
func (x *part) setKey(p *Policy, key []byte) {
	if name := p.prefixes[x.limit]; x.prefix != name {
		x.prefix, x.op.Key = name, append(x.op.Key[:0], name...)
	}
	x.op.Key = append(x.op.Key[:len(x.prefix)], key...)
	x.c.Key = x.op.Key
}

// open opens the part's limiter. It treats a limiter of another algorithm, which the policy had before, as
// absent.
func (x *part) open() {
	x.s.Open(&x.c)
	if x.c.Entry != nil && x.s.Limits.At(x.c.Entry.Limit()).Since != x.op.Limit.Since {
		x.s.catchUp(&x.c)
	}
	x.s.RestoreUnits(&x.c)
	x.opened()
}

// opened completes open.
func (x *part) opened() {
	x.moves = x.s.Moves
	x.c.Live = x.c.Live && x.c.Entry.Kind() == uint8(x.op.Limit.Algorithm)
}

// unopened returns the part's cell without its entry.
func (x *part) unopened() store.Cell {
	return store.Cell{Hash: x.c.Hash, Key: x.c.Key, Reserve: x.c.Reserve}
}

// followMove opens the limiter again if another part moved the limiters of its bundle: by a take, or by a change of its
// limit to the definition in force.
func (x *part) followMove() {
	if x.moves == x.s.Moves {
		return
	}
	known := x.c.Known
	x.c = x.unopened()
	x.s.Open(&x.c)
	x.opened()
	x.c.Known = known
}

// preview is ask for a limit whose take can be computed in advance.
func (x *part) preview(cost int64) bool {
	x.followMove()
	if x.op.Cost = cost; cost > 0 {
		x.op.Cost += x.reserved
	}
	x.d = Decision{}
	x.outcome = evaluate(&x.s.Store, &x.c, &x.op, &x.d)
	x.previewed = x.op.Cost == cost
	return x.d.Allowed > 0
}

// surelyFits reports whether a cheap comparison shows that the limit has the units. Most limits have them, so a
// check costs little more than its takes.
func (x *part) surelyFits(cost int64) bool {
	x.followMove()
	x.op.Cost = cost + x.reserved
	return surelyFits(&x.s.Store, &x.c, &x.op)
}

// strikes reports whether the part's limit is a strike limit.
func (x *part) strikes() bool { return x.op.Limit.Algorithm == Strike }

// ask reports whether a limit has cost units in addition to the reserved units, without taking them. For strikes
// it only reports whether no penalty runs, and ignores cost.
func (x *part) ask(cost int64) bool {
	x.followMove()
	if x.strikes() {
		cost = 0
	}
	x.op.Dry, x.op.Cost = true, cost
	if cost > 0 {
		x.op.Cost += x.reserved
	}
	x.d = Decision{}
	x.s.take(&x.c, &x.op, &x.d)
	return x.d.Allowed > 0
}

// take takes from one limit.
func (x *part) take() bool {
	x.followMove()
	if x.previewed {
		return apply(&x.s.Store, &x.c, &x.op, &x.d, x.outcome)
	}
	x.d = Decision{}
	return x.s.take(&x.c, &x.op, &x.d)
}

// reopen finds the part's limiter again, after an eviction that may have dropped or moved it.
func (x *part) reopen() {
	x.c, x.previewed = x.unopened(), false
	x.open()
}
