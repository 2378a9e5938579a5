package engine

import (
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
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
	c, b := cell{hash: h, key: key}, cell{hash: h, key: key, ns: blocks}
	s.open(&c)
	s.open(&b)
	s.bringUp(&c)
	if c.live {
		s.describe(&c, &info)
	}
	lastNs := int64(0)
	if b.live {
		untilNs, reason := readBlock(b.e.state())
		info.Blocked, info.BlockedMs, info.Reason = true, s.spanMs(untilNs), string(reason)
		info.BlockedBy, info.Everywhere = string(key), isEverywhere(b.e.state())
		info.Bytes += s.slab.Len(b.r) + indexBytes
		lastNs = untilNs
	}
	if all := s.t.everywhere.Load(); all != nil {
		if x := all.on(key, s.nowNs); x.untilNs > lastNs {
			info.Blocked, info.BlockedMs, info.Reason, info.BlockedBy = true, s.spanMs(x.untilNs), x.reason, x.key
		}
	}
	return info, c.live || b.live
}

// indexBytes is what the index takes per entry, on average.
const indexBytes = segmentBytes * 4 / (segmentSlots * 3)

func (s *shard) describe(c *cell, info *Info) {
	e := c.e
	info.Algorithm = Algorithm(e.kind())
	info.Limit = *s.limits.at(e.limit())
	info.Used = s.usedUnits(e)
	info.IdleInMs = s.spanMs(s.idleAtNs(e))
	info.Bytes = s.slab.Len(c.r) + indexBytes
	switch info.Algorithm {
	case SlidingLog, Strike:
		log := unitlog.Read(e.state())
		info.Bytes += log.Bytes(&s.slab)
	case Concurrency:
		set := leases.Read(e.state())
		info.Bytes += set.Bytes(&s.slab)
		set.Hide(&s.slab, s.nowNs)
		info.Holders = int(set.Count)
	case Counter:
		return
	case Scripted:
		record := script.ReadRecord(e.state())
		info.Bytes += script.Bytes(e.state(), &s.slab)
		info.IdleInMs, info.Hash = record.LeftMs(s.nowNs), record.Hash()
		return
	}
	if info.Algorithm == Strike {
		info.PenaltyMs = s.spanMs(strikeBlockedNs(e.state()))
	}
	if k := s.openClaims(c); k.r != 0 && !void(c, &k) {
		set := leases.Read(k.e.state())
		info.Bytes += s.slab.Len(k.r) + indexBytes + set.Bytes(&s.slab)
		set.Hide(&s.slab, s.nowNs)
		info.Holders = int(set.Count)
	}
	if info.Algorithm == TokenBucket {
		info.AtMs = (s.nowNs + s.offsetNs) / 1e6
		info.Tokens = tokensText(&info.Limit, deficitAt(bucketOf(e), info.Limit.Rate, s.nowNs))
	}
	var d Decision
	s.take(c, &Op{Key: c.key, Limit: info.Limit, Dry: true}, &d)
	info.Remaining, info.IdleInMs = d.Remaining, d.ResetMs
}

// usedUnits is what counts against an entry's limit now, rounded up.
func (s *shard) usedUnits(e entry) int64 {
	st, l := e.state(), s.limits.at(e.limit())
	switch e.kind() {
	case uint8(TokenBucket), uint8(LeakyBucket):
		return deficitAt(bucketOf(e), l.Rate, s.nowNs).DivUp(uint64(l.Rate.PerNs))
	case uint8(FixedWindow):
		return readFixed(st).used
	case uint8(SlidingLog), uint8(Strike):
		log := unitlog.Read(st)
		return log.Units - log.UnitsUntil(&s.slab, s.nowNs-l.WindowNs)
	case uint8(SlidingCounter):
		return readSlidingCounter(st).roll(s.nowNs, l.WindowNs).used(s.nowNs, l.WindowNs)
	case uint8(Concurrency):
		set := leases.Read(st)
		set.Hide(&s.slab, s.nowNs)
		return set.Units
	case uint8(Counter):
		return int64(le.Uint64(st))
	case uint8(Scripted):
		return script.UsedUnits(st)
	}
	return 0
}
