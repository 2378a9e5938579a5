package engine

import (
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// Info describes one key for people: RL.INSPECT, TTL, TYPE.
type Info struct {
	Algorithm Algorithm // NoAlgorithm: the key is only blocked
	Limit     Limit     // the limit last used
	// Used is what counts against the limit now, in units, rounded up: missing
	// tokens, queued units, units in the window, units held, strikes. For a Counter
	// its value.
	Used      int64
	Remaining int64 // as a decision would report it
	IdleInMs  int64 // until the limiter is idle (rounded up), -1: never by itself
	// Blocked says whether an administrative block is in force; BlockedMs is what is
	// left of it (-1: no end) and Reason its text.
	Blocked   bool
	BlockedMs int64
	Reason    string
	BlockedBy string // the key of the block: another than this one if it holds everywhere
	// Everywhere: the block of this key holds everywhere.
	Everywhere bool
	// PenaltyMs is what is left of a strike penalty.
	PenaltyMs int64
	Holders   int // leases, or holds on the limit of a policy
	// Hash is what a Scripted limiter keeps, if its script keeps a hash; else it is empty.
	Hash HashFields
	// Tokens tells what a TokenBucket held at AtMs (the wall clock, in Unix milliseconds), with
	// its fraction, in decimal: "14.5". It is exact up to nine decimals and rounded down there; a
	// bucket in debt holds less than none.
	Tokens string
	AtMs   int64
	Bytes  int // memory the entry takes, index included
}

// tokensText writes what a bucket holds that lacks so many tokens, in grains.
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

// Stats is what a table says about itself.
type Stats struct {
	Keys           int64 // limiters and blocks that are not idle
	KeysBy         [rule.NumAlgorithms]int64
	MemoryBytes    int64 // pages, index, limits
	MaxMemoryBytes int64 // 0: no bound
	Expired        int64 // idle entries collected
	Evicted        int64 // entries given up for room
	ForgivenUnits  int64 // units in use that evictions forgot
	Admitted       [rule.NumAlgorithms]int64
	Denied         [rule.NumAlgorithms]int64
	Strikes        int64 // that were counted; of limits with Attempts the attempts
	Successes      int64 // of these attempts, those that succeeded
	Delays         int64 // strikes that were admitted with a delay
	Penalties      int64 // that strikes began
	Lockouts       int64 // of them those of the last threshold
}

// Inspect describes key, or reports false when it is idle and not blocked by itself. A block
// everywhere on another key is told of all the same.
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
	s.BringUp(&c)
	if c.Live {
		s.describe(&c, &info)
	}
	lastNs := int64(0)
	if b.Live {
		untilNs, reason := store.ReadBlock(b.Entry.State())
		info.Blocked, info.BlockedMs, info.Reason = true, s.SpanMs(untilNs), string(reason)
		info.BlockedBy, info.Everywhere = string(key), store.IsEverywhere(b.Entry.State())
		info.Bytes += s.Slab.Len(b.Ref) + store.IndexBytes
		lastNs = untilNs
	}
	if all := s.t.everywhere.Load(); all != nil {
		if x := all.on(key, s.NowNs); x.untilNs > lastNs {
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
	info.Bytes = s.Slab.Len(c.Ref) + store.IndexBytes
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
		info.IdleInMs, info.Hash = record.LeftMs(s.NowNs), record.Hash()
		return
	}
	if info.Algorithm == Strike {
		info.PenaltyMs = s.SpanMs(store.StrikeBlockedNs(e.State()))
	}
	if k := s.OpenAllocations(c); k.Ref != 0 && !store.Void(c, &k) {
		set := leases.Read(k.Entry.State())
		info.Bytes += s.Slab.Len(k.Ref) + store.IndexBytes + set.Bytes(&s.Slab)
		set.Hide(&s.Slab, s.NowNs)
		info.Holders = int(set.Count)
	}
	if info.Algorithm == TokenBucket {
		info.AtMs = (s.NowNs + s.OffsetNs) / 1e6
		info.Tokens = tokensText(&info.Limit, store.DeficitAt(store.BucketOf(e), info.Limit.Rate, s.NowNs))
	}
	var d Decision
	s.take(c, &Op{Key: c.Key, Limit: info.Limit, Dry: true}, &d)
	info.Remaining, info.IdleInMs = d.Remaining, d.ResetMs
}
