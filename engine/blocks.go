package engine

import (
	"maps"
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

func (s *shard) block(c *store.Cell, op *Op, d *Decision) bool {
	everywhere := op.Code == OpBlockEverywhere
	if everywhere && !s.mayBlockEverywhere(op.Key) {
		d.Status = BlocksFull
		return false
	}
	wasEverywhere := c.Live && store.IsEverywhere(c.Entry.State())
	if !s.Ensure(c, store.KindBlock, store.BlockLen+len(op.Text)) {
		d.Status = OutOfMemory
		return false
	}
	d.Allowed = 1
	if everywhere {
		d.Remaining = arith.OneIf(wasEverywhere)
	}
	s.BlockChanged(c.Entry, false)
	store.WriteBlock(c.Entry.State(), arith.AddNs(s.NowNs, op.TTLNs), everywhere, op.Text)
	s.BlockChanged(c.Entry, true)
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
// of the key itself, blocks everywhere, and a block of the address that the operation comes from.
func (s *shard) blockedUntil(hash uint64, key []byte, op *Op) (untilNs int64, blocked bool) {
	if s.Counts.Entries[store.KindBlock] > 0 {
		b := store.Cell{Hash: hash, Key: key, Space: store.Blocks}
		s.Open(&b)
		if b.Live {
			untilNs, _ = store.ReadBlock(b.Entry.State())
		}
	}
	if all := s.t.everywhere.Load(); all != nil {
		untilNs = max(untilNs, all.on(key, s.NowNs).untilNs, all.from(op.From, s.NowNs))
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

// noteBlock updates the set of blocks everywhere for an entry that becomes or stops being a block everywhere.
func (s *shard) noteBlock(e store.Entry, there bool) {
	if e.Kind() != store.KindBlock || !store.IsEverywhere(e.State()) {
		return
	}
	s.t.changeEverywhere(func(byKey map[string]blockEverywhere) {
		if delete(byKey, string(e.Key())); there {
			untilNs, reason := store.ReadBlock(e.State())
			byKey[string(e.Key())] = blockEverywhere{string(e.Key()), untilNs, string(reason)}
		}
	})
}

// forgetEverywhere removes the blocks of a shard that is being cleared from the set of blocks everywhere.
func (s *shard) forgetEverywhere() {
	if s.t.everywhere.Load() == nil {
		return
	}
	s.t.changeEverywhere(func(byKey map[string]blockEverywhere) {
		maps.DeleteFunc(byKey,
			func(key string, _ blockEverywhere) bool { return s.t.shardNumber([]byte(key)) == s.number })
	})
}

// mayBlockEverywhere reports whether one more block everywhere is allowed. It counts only blocks in force,
// because tables collect ended blocks at different times.
func (s *shard) mayBlockEverywhere(key []byte) bool {
	all := s.t.everywhere.Load()
	return all == nil || len(all.byKey) < MaxBlocksEverywhere || all.inForce(key, s.NowNs) < MaxBlocksEverywhere
}

// anyBlock reports whether a key of the shard may be blocked. Usually none is.
func (s *shard) anyBlock() bool {
	return s.Counts.Entries[store.KindBlock] > 0 || s.t.everywhere.Load() != nil
}

// BlocksEverywhere lists the keys of the blocks everywhere that are in force, in ascending order.
func (t *Table) BlocksEverywhere(at Stamp) (keys []string) {
	all := t.everywhere.Load()
	if all == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(all.byKey)) {
		if all.byKey[key].untilNs > at.NowNs {
			keys = append(keys, key)
		}
	}
	return keys
}

// changeEverywhere replaces the set of blocks everywhere by a copy that change has modified. The caller holds
// the lock of the shard whose block changes.
func (t *Table) changeEverywhere(change func(byKey map[string]blockEverywhere)) {
	t.everywhereMu.Lock()
	defer t.everywhereMu.Unlock()
	next := &blocksEverywhere{byKey: map[string]blockEverywhere{}}
	if old := t.everywhere.Load(); old != nil {
		next.byKey = maps.Clone(old.byKey)
	}
	if change(next.byKey); len(next.byKey) == 0 {
		t.everywhere.Store(nil)
		return
	}
	next.index()
	t.everywhere.Store(next)
}

// changesEverywhere reports whether an operation changes, or may change, the set of blocks everywhere.
func (t *Table) changesEverywhere(op *Op) bool {
	return op.Code == OpBlockEverywhere || (op.Code == OpBlock || op.Code == OpUnblock) && t.everywhere.Load() != nil
}
