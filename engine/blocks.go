package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// A key has at most one block of its own and one block everywhere. Both are in one entry, and the later end counts.
// OpBlock, OpBlockEverywhere and OpUnblock with High set change one of them and keep the other. Without High, OpUnblock
// lifts both, and by rules older than RulesBlocks a new block replaces both. In a batch that begins with an OpFollow,
// OpUnblock lifts the block everywhere.

// keepsOther reports whether an operation on a key with two blocks keeps one of them. A node that has just
// restarted may take High from an operation, because it does not know yet what its log has.
func (s *shard) keepsOther(op *Op) bool {
	return op.High || s.t.order.follows || op.Code != OpUnblock && s.t.Rules() >= RulesBlocks
}

// changeBlocks carries out OpBlock, OpBlockEverywhere and OpUnblock.
func (s *shard) changeBlocks(c *store.Cell, op *Op, d *Decision) bool {
	own, all := s.blocksOf(c)
	keeps := s.keepsOther(op)
	if op.Partial && all.UntilNs != 0 && (op.Code != OpBlock || !keeps) {
		d.Status = EverywhereStays
		return false
	}
	nextOwn, nextAll := store.Block{}, store.Block{}
	switch {
	case op.Code == OpUnblock && s.t.order.batch != nil:
		nextOwn = own
	case keeps && op.Code == OpBlockEverywhere:
		nextOwn = own
	case keeps:
		nextAll = all
	}
	switch op.Code {
	case OpBlock:
		nextOwn = store.Block{UntilNs: arith.AddNs(s.NowNs, op.TTLNs), Reason: op.Text}
		if op.Keep && own.UntilNs >= nextOwn.UntilNs {
			nextOwn = own
		}
	case OpBlockEverywhere:
		if !s.mayBlockEverywhere(op.Key) {
			if d.Status = BlocksFull; s.t.Rules() >= RulesManyBlocks { // older versions remember the answer without it
				d.Remaining = MaxBlocksEverywhere
			}
			return false
		}
		nextAll = store.Block{
			UntilNs: arith.AddNs(s.NowNs, op.TTLNs), Reason: op.Text, Version: s.t.nextBlockVersion(op),
		}
		d.Remaining = arith.OneIf(all.UntilNs != 0)
	case OpUnblock:
		d.Allowed = arith.OneIf(own.UntilNs != nextOwn.UntilNs || all.UntilNs != nextAll.UntilNs)
	}
	if op.Code != OpUnblock {
		d.Allowed = 1
	}
	if d.Allowed > 0 && !s.setBlocks(c, nextOwn, nextAll) {
		*d = Decision{Status: OutOfMemory}
		return false
	}
	changed := op.Code == OpBlockEverywhere || all.UntilNs != nextAll.UntilNs
	d.Limit = int64(s.t.blockChanged(op, changed, nextAll, s.NowNs))
	return d.Allowed > 0
}

// blocksOf returns copies of the blocks of a key that are in force.
func (s *shard) blocksOf(c *store.Cell) (own, everywhere store.Block) {
	if !c.Live {
		return own, everywhere
	}
	inForce := func(b store.Block) store.Block {
		if b.UntilNs <= s.NowNs {
			return store.Block{}
		}
		b.Reason = slices.Clone(b.Reason)
		return b
	}
	own, everywhere = store.ReadBlocks(c.Entry.State())
	return inForce(own), inForce(everywhere)
}

// setBlocks makes these the blocks of a key. It returns false if memory is exhausted.
func (s *shard) setBlocks(c *store.Cell, own, everywhere store.Block) bool {
	if own.UntilNs == 0 && everywhere.UntilNs == 0 {
		s.Drop(c)
		return true
	}
	if !s.Ensure(c, store.KindBlock, store.BlocksLen(own, everywhere)) {
		return false
	}
	store.WriteBlocks(c.Entry.State(), own, everywhere)
	s.setEverywhere(c.Key, everywhere)
	c.Relink = true
	s.Touched(c)
	return true
}

// denyBlocked answers an OpTake on a blocked key. It returns false if the key is not blocked.
func (s *shard) denyBlocked(c *store.Cell, op *Op, d *Decision) bool {
	untilNs, blocked := s.blockedUntil(c.Hash, c.Key, op)
	if !blocked {
		return false
	}
	look := *op
	look.Cost, look.Dry = 0, true
	s.take(c, &look, d)
	leftMs := s.SpanMs(untilNs)
	resetMs := max(d.ResetMs, leftMs)
	if d.ResetMs < 0 || leftMs < 0 {
		resetMs = -1
	}
	*d = Decision{RetryMs: leftMs, ResetMs: resetMs, Limit: op.Limit.Max}
	if s.t.Rules() >= RulesWaits {
		d.Part, d.RetryMs = NoPart, s.waitBehindBlock(c, op, untilNs)
		d.ResetMs = max(d.ResetMs, d.RetryMs)
		if resetMs < 0 {
			d.ResetMs = -1
		}
	}
	return true
}

// aheadLimitNs bounds the instants at which a denial by a block looks at the limits behind it. No time that a block
// or a window adds to such an instant overflows.
const aheadLimitNs = 1 << 62

// blockEnd returns the wait until a block is over, in milliseconds rounded up, and the instant after that wait. If the
// instant is too late for a look, ahead is false.
func (s *shard) blockEnd(untilNs int64) (leftMs, atNs int64, ahead bool) {
	leftMs = s.SpanMs(untilNs)
	if untilNs >= aheadLimitNs {
		return leftMs, 0, false
	}
	return leftMs, s.NowNs + leftMs*1e6, true
}

// waitBehindBlock returns how long an OpTake on a blocked key must wait: until the block is over, and its limit admits
// it. A strike waits for the end of the penalty only.
func (s *shard) waitBehindBlock(c *store.Cell, op *Op, untilNs int64) int64 {
	leftMs, atNs, ahead := s.blockEnd(untilNs)
	if !ahead {
		return leftMs
	}
	look, d := *op, Decision{}
	if look.Dry = true; op.Limit.Algorithm == Strike {
		look.Cost = 0
	}
	s.BeginAhead(atNs)
	then := store.Cell{Hash: c.Hash, Key: c.Key}
	s.Open(&then)
	s.take(&then, &look, &d)
	s.EndAhead()
	switch {
	case d.Status != OK || d.Allowed > 0:
		return leftMs
	case d.RetryMs < 0:
		return -1
	}
	return leftMs + d.RetryMs
}

// waitBehindBlock fills in how long a check must wait that a block of a policy's key denies: until the block is over,
// and the limits behind it admit the check, and at least as long as the policy says. It also fills in when these limits
// are idle. The parts are void then.
func (k *checker) waitBehindBlock(home *shard, op *Op, untilNs int64, p *Policy, d *Decision) {
	leftMs, atNs, ahead := home.blockEnd(untilNs)
	if !ahead || home.t.Rules() < RulesWaits {
		return
	}
	k.clear()
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			break
		}
		h, s := home.t.find(pair.Key)
		s.flushForgotten()
		s.BeginAhead(atNs)
		k.add(s, h, home.policy(pair.Policy), i, pair.Key, op)
	}
	retryMs, resetMs := k.waits(op)
	if op.Else != 0 {
		f := funding{k: k, s: home, op: op}
		retryMs = f.wait()
	}
	k.clear()
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			break
		}
		_, s := home.t.find(pair.Key)
		s.EndAhead()
	}
	add := func(ms int64) int64 {
		if ms < 0 {
			return -1
		}
		return leftMs + ms
	}
	d.RetryMs, d.ResetMs = add(retryMs), add(resetMs)
	p.delay(d)
}

// waits returns how long a check must wait for the limits that bind, and how long until they are idle.
func (k *checker) waits(op *Op) (retryMs, resetMs int64) {
	k.look(op)
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && !g.policy.Shadow; j++ {
			x := &k.parts[j]
			if !x.fits && longerWait(x.d.RetryMs, retryMs) {
				retryMs = x.d.RetryMs
			}
			if x.ask(0); longerWait(x.d.ResetMs, resetMs) {
				resetMs = x.d.ResetMs
			}
		}
	}
	if resetMs >= 0 {
		resetMs = max(resetMs, retryMs)
	}
	return retryMs, resetMs
}

// isBlocked reports whether an administrative block denies the operation on the key.
func (s *shard) isBlocked(c *store.Cell, op *Op) bool {
	_, blocked := s.blockedUntil(c.Hash, c.Key, op)
	return blocked
}

// blockedUntil returns when the last administrative block of an operation on a key ends. It considers the block
// of the key itself, blocks everywhere, and blocks of the address that the operation comes from.
func (s *shard) blockedUntil(hash uint64, key []byte, op *Op) (untilNs int64, blocked bool) {
	if s.Counts.Entries[store.KindBlock] > 0 {
		b := store.Cell{Hash: hash, Key: key, Space: store.Blocks}
		s.Open(&b)
		if b.Live {
			own, _ := store.ReadBlocks(b.Entry.State())
			if own.UntilNs > s.NowNs {
				untilNs = own.UntilNs
			}
		}
	}
	if s.t.everywhere.Load() != nil {
		untilNs = max(untilNs, s.t.everywhereOn(key, s.NowNs).end(), s.t.everywhereFrom(op.From, s.NowNs).end())
	}
	return untilNs, untilNs > 0
}

// blockedMs returns how many milliseconds an administrative block on the key still lasts, -1 for no end, and
// whether the key is blocked.
func (s *shard) blockedMs(c *store.Cell, op *Op) (leftMs int64, blocked bool) {
	untilNs, blocked := s.blockedUntil(c.Hash, c.Key, op)
	if !blocked {
		return 0, false
	}
	return s.SpanMs(untilNs), true
}

// anyBlock reports whether a key of the shard may be blocked. Usually none is.
func (s *shard) anyBlock() bool {
	return s.Counts.Entries[store.KindBlock] > 0 || s.t.everywhere.Load() != nil
}

// changesEverywhere reports whether an operation changes, or may change, the set of blocks everywhere.
func (t *Table) changesEverywhere(op *Op) bool {
	switch op.Code {
	case OpBlockEverywhere, OpFollow:
		return true
	case OpBlock, OpUnblock:
		all := t.everywhere.Load()
		return all != nil && (!op.High || all.of(t, op.Key) != nil)
	}
	return false
}
