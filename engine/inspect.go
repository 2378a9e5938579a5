package engine

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// Info describes one key to an operator: RL.INSPECT, TTL, TYPE.
type Info struct {
	Algorithm Algorithm // NoAlgorithm: the key has no limiter
	Limit     Limit     // the limit last used
	// Used is how many units count against the limit now, rounded up: missing tokens, queued units, units in the
	// window, units of leases, or strikes. For a Counter it is the value.
	Used      int64
	Remaining int64 // as a decision would report it
	IdleInMs  int64 // until the limiter is idle, rounded up; -1: it does not become idle by itself
	// Blocked reports whether an administrative block is in force. BlockedMs is its remaining time, -1 for no end,
	// and Reason its text.
	Blocked   bool
	BlockedMs int64
	Reason    string
	BlockedBy string // the key of the block; a block everywhere may have another key than this key
	// Everywhere reports whether the block of this key is a block everywhere.
	Everywhere bool
	// PenaltyMs is the remaining time of a strike penalty.
	PenaltyMs int64
	Holders   int // leases, or holds on the limit of a policy
	// Hash is the hash that a Scripted limiter keeps, or empty if its script keeps no hash.
	Hash HashFields
	// Members is the number of members of the sorted set that a Scripted limiter keeps, or 0 if its script keeps none.
	Members int64
	IsList  bool // a Scripted limiter keeps a list
	// Tokens is the content of a TokenBucket at AtMs (wall clock, Unix milliseconds), as a decimal with its
	// fraction: "14.5". It is exact to nine decimals and rounded down after them. A bucket in debt has a negative
	// content.
	Tokens string
	AtMs   int64
	Bytes  int // the memory of the entry, index included
}

// tokensText formats the content of a bucket that lacks the given number of tokens, in grains.
func tokensText(l *Limit, missing arith.Uint128) string {
	full, grain := l.Rate.Grains(l.Max), uint64(l.Rate.PerNs)
	held, sign := full.SubFloor(missing), ""
	if full.Less(missing) {
		held, sign = missing.Sub(full), "-"
	}
	whole, _ := held.Div(grain)
	part := arith.Mul(held.Mod(grain), 1e9)
	if sign != "" {
		part = part.Add(arith.Uint128{Hi: 0, Lo: grain - 1})
	}
	billionths, _ := part.Div(grain)
	if billionths == 1e9 {
		whole, billionths = whole+1, 0
	}
	text := sign + strconv.FormatUint(whole, 10)
	if billionths == 0 {
		return text
	}
	digits := strconv.FormatUint(1e9+billionths, 10)[1:]
	return text + "." + strings.TrimRight(digits, "0")
}

// Inspect describes a key. It returns false if the key is idle and has no block of its own, but still reports a
// block everywhere on another key.
func (t *Table) Inspect(at Stamp, key []byte) (Info, bool) {
	h, s := t.find(key)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	return s.inspect(h, key)
}

func (s *shard) inspect(h uint64, key []byte) (info Info, found bool) {
	c, b := store.Cell{Hash: h, Key: key}, store.Cell{Hash: h, Key: key, Space: store.Blocks}
	s.Open(&c)
	s.Open(&b)
	s.UpToDate(&c)
	if c.Live {
		s.describe(&c, &info)
	}
	lastNs := int64(0)
	if b.Live {
		own, everywhere := s.blocksOf(&b)
		last := own
		if everywhere.UntilNs >= own.UntilNs {
			last = everywhere
		}
		untilNs := last.UntilNs
		info.Blocked, info.BlockedMs, info.Reason = true, s.SpanMs(untilNs), string(last.Reason)
		info.BlockedBy, info.Everywhere = string(key), everywhere.UntilNs != 0
		info.Bytes += s.Slab.Len(b.Ref) + store.IndexBytes
		lastNs = untilNs
	}
	if s.t.everywhere.Load() != nil {
		if x := s.t.everywhereOn(key, s.NowNs); x.end() > lastNs {
			info.Blocked, info.BlockedMs, info.Reason, info.BlockedBy = true, s.SpanMs(x.untilNs), x.reason, x.key
		}
	}
	return info, c.Live || b.Live
}

func (s *shard) describe(c *store.Cell, info *Info) {
	e := c.Entry
	info.Algorithm = Algorithm(e.Kind())
	info.Limit = *s.Limits.At(e.Limit())
	info.Used = s.UsedUnits(e)
	info.IdleInMs = s.SpanMs(s.IdleAtNs(e))
	info.Bytes = s.CellBytes(c)
	switch info.Algorithm {
	case SlidingLog, Strike:
		log := unitlog.Read(e.State())
		info.Bytes += log.Bytes(&s.Slab)
	case Concurrency:
		set := leases.Read(e.State())
		info.Bytes += set.Bytes(&s.Slab)
		set.Hide(&s.Slab, s.NowNs)
		info.Holders = int(set.Count)
	case Counter:
		return
	case Scripted:
		record := script.ReadRecord(e.State())
		info.Bytes += script.Bytes(e.State(), &s.Slab)
		info.IdleInMs, info.Hash, info.Members = record.LeftMs(s.NowNs), record.Hash(), record.Members()
		info.IsList = record.IsList()
		return
	}
	if info.Algorithm == Strike {
		info.PenaltyMs = s.SpanMs(store.StrikeBlockedNs(e.State()))
	}
	if holds, bytes := s.HoldsOn(c); bytes > 0 {
		info.Holders, info.Bytes = holds, info.Bytes+bytes
	}
	if info.Algorithm == TokenBucket {
		info.AtMs = (s.NowNs + s.OffsetNs) / 1e6
		info.Tokens = tokensText(&info.Limit, store.DeficitAt(store.BucketOf(e), info.Limit.Rate, s.NowNs))
	}
	var d Decision
	s.take(c, &Op{Key: c.Key, Limit: info.Limit, Dry: true}, &d)
	info.Remaining, info.IdleInMs = d.Remaining, d.ResetMs
	info.Limit.Since = rule.Moment{}
}

// Top returns up to n keys with the most units admitted or denied lately, the heaviest first. Limiters of
// policies are listed by their own names. An admitted check counts once for each of its policies, under the
// first limit. A denied check counts under the limit that binds. A blocked key counts under the key itself.
//
// Top reports the decisions of this table only, and its counts are not stored. It is a look and leaves no
// trace.
func (t *Table) Top(at Stamp, v Verdict, n int) []Heavy {
	var all []Heavy
	for i := range t.shards {
		all = t.shards[i].appendTop(all, at, v)
	}
	slices.SortFunc(all, func(a, b Heavy) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units), bytes.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

func (s *shard) appendTop(all []Heavy, at Stamp, v Verdict) []Heavy {
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	return s.heavy.AppendTo(all, s.NowNs, v)
}

// CursorBits is the size of a scan cursor: the leading bits of the hash of the next key. Tables with one seed agree on
// these bits with any number of shards: the lower bits of siblings depend on it (store.SiblingHash). A segment has
// fewer leading bits, because no table has 2^35 segments.
const CursorBits = 35

// Scan calls visit with keys that are not idle. A scan starts at cursor 0. One call visits at least count keys,
// if there are as many, and returns the next cursor, or 0 at the end of the table.
//
// A key that exists throughout the scan is visited at least once. key is valid only during visit, which must
// not use the table. A cursor is a position among the hashes. It stays valid while the table grows, and for every
// table with the same seed. A cursor that is none begins again: that of an older version, which had more bits.
func (t *Table) Scan(at Stamp, cursor uint64, count int, visit func(key []byte, a Algorithm)) uint64 {
	if cursor>>CursorBits != 0 {
		cursor = 0
	}
	full := cursor << (64 - CursorBits)
	for {
		full = t.lookSegment(at, full, func(s *shard, g *store.Segment) { count -= s.visitSegment(g, visit) })
		if full == 0 || count <= 0 && full<<CursorBits == 0 {
			return full >> (64 - CursorBits)
		}
	}
}

// visitSegment visits the keys of a segment and returns how many it visited.
func (s *shard) visitSegment(g *store.Segment, visit func(key []byte, a Algorithm)) (n int) {
	g.Each(func(r arena.Ref) {
		s.EachView(r, func(e store.Entry, live bool) {
			a := Algorithm(e.Kind())
			if e.Kind() >= store.KindToken || !live || a == NoAlgorithm && s.liveLimiter(e.Key()) {
				return
			}
			n++
			visit(e.Key(), a)
		})
	})
	return n
}

func (s *shard) liveLimiter(key []byte) bool {
	c := store.Cell{Hash: s.t.hashKey(key), Key: key}
	s.Open(&c)
	s.UpToDate(&c)
	return c.Live
}

// RandomKey returns a copy of the stored name of a random key of a database that is not idle, or nil. pick is a random
// number. It visits more of the table if the database has few of the keys.
func (t *Table) RandomKey(at Stamp, pick uint64, database int) (key []byte) {
	seen := uint64(0)
	visit := func(k []byte, _ Algorithm) {
		if rule.DatabaseOf(k) != database {
			return
		}
		// Reservoir sampling over the visited segments.
		if seen++; pick%seen == 0 {
			key = append(key[:0], k...)
		}
		pick = pick*6364136223846793005 + 1442695040888963407
	}
	for cursor, again := pick>>(64-CursorBits), true; key == nil; {
		if cursor = t.Scan(at, cursor, 1, visit); cursor == 0 {
			if !again {
				return key
			}
			again = false
		}
	}
	return key
}

// Explain answers operations that are all Dry as Decide would, each by itself. The stamp may be later than that
// of the last decision. Explain leaves no trace; see look.
func (t *Table) Explain(at Stamp, ops []Op, out []Decision) {
	var few [2 * MaxPairs]int
	for i := range ops {
		t.explain(at, &ops[i], &out[i], t.lock(ops[i:i+1], few[:0]))
	}
}

// explain answers an operation whose shards are locked, and unlocks them.
func (t *Table) explain(at Stamp, op *Op, d *Decision, involved []int) {
	defer func() {
		for _, i := range involved {
			t.shards[i].unlock()
		}
	}()
	for _, i := range involved { // one instant for all, as in DecideAtomic
		at.NowNs = max(at.NowNs, t.shards[i].NowNs)
	}
	for _, i := range involved {
		t.shards[i].look(at)
	}
	h, s := t.find(op.Key)
	s.do(h, op, d)
}

// ValueGrows reports whether an operation on strings may need memory: for a new entry, or for a longer value
// than the key has. It returns true for TextAppend, whose new length it does not compute.
func (t *Table) ValueGrows(at Stamp, op *Op) bool {
	h, s := t.find(op.Key)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	c := store.Cell{Hash: h, Key: op.Key}
	s.Open(&c)
	if !c.Live || c.Entry.Kind() != uint8(Scripted) {
		return !c.Live // an entry of another kind makes Decide refuse the operation
	}
	has := script.ValueLen(c.Entry.State())
	switch texts := op.Script.ID.TextsOf(); {
	case op.Script.ID == TextDrop:
		return false
	case op.Script.ID == TextAppend:
		return true
	default:
		return len(op.Script.Values[texts-1]) > has
	}
}

// CheckGrows reports whether a check may need memory: for the limiter of a limit that is idle now, or for a log
// that grows.
func (t *Table) CheckGrows(at Stamp, op *Op) bool {
	set := t.policies.Load()
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return false
		}
		p := set.Get(pair.Policy)
		if p == nil || p.Disabled {
			continue
		}
		limits := p.limitsFor(pair.Key, at.NowNs)
		for k := range limits {
			name := append([]byte(p.prefixes[k]), pair.Key...)
			if a := limits[k].Limit.Algorithm; a == SlidingLog || a == Strike || !t.Has(at, name) {
				return true
			}
		}
	}
}

// lookSegment calls visit with the shard and the segment of a full hash. The shard is locked and looks at the
// stamp. lookSegment returns the first full hash after the segment, or 0 after the last segment.
func (t *Table) lookSegment(at Stamp, full uint64, visit func(*shard, *store.Segment)) (next uint64) {
	s := t.shardOf(full)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	g := s.Index.SegmentOf(full << t.shardBits)
	visit(s, g)
	depth := t.shardBits + int(g.Depth)
	if depth == 0 {
		return 0
	}
	// The segment covers all hashes with its leading bits.
	span := uint64(1) << (64 - depth)
	return full&^(span-1) + span
}

// Has reports whether key has a limiter that is not idle.
func (t *Table) Has(at Stamp, key []byte) bool {
	h, s := t.find(key)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	c := store.Cell{Hash: h, Key: key}
	s.Open(&c)
	s.UpToDate(&c)
	return c.Live
}
