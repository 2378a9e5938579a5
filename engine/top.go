package engine

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// A table knows which keys the most units were admitted for, and denied, lately. Every
// shard keeps a sketch of each (sketch.go) under the lock that its decisions hold
// anyway. Sketches say nothing about limits: they are no part of StateHash, are not
// drained, and what is asked of them changes no answer.
//
// A sketch costs a decision next to nothing because most are not written into it.
// Of units that come one by one it takes each as long as there are few, then one of
// 2, 4, 8 ... for as many, but larger amounts always: threshold sampling (Duffield,
// Lund and Thorup, "Learn more, sample less", IEEE Transactions on Information Theory
// 51(5), 2005), which is right on average. What is passed over costs a step of a
// random number generator and a comparison.

// Verdict is what Top is asked about.
type Verdict uint8

// The verdicts.
const (
	Admitted Verdict = iota
	Denied
	numVerdicts
)

const (
	// topPeriodNs is after how long what was counted counts half: who looks wants to
	// know whom to blame now, and compares with what a minute ago was.
	topPeriodNs = int64(60e9)
	// topSample is how many units a sketch holds at least for each one that it lets a
	// sample stand for. So chance adds to a count of c among all w of a shard an error
	// with a standard deviation below sqrt(c*w)/64; until w exceeds 8192 it adds none.
	topSample = 4096
	// topMost bounds the units of a sketch, so that sums fit 64 bits. What is above is
	// not counted; it takes hundreds of the largest costs in a minute.
	topMost = math.MaxInt64 / 8
)

// chanceMultiplier makes a multiplicative congruential generator modulo 2^64, of which
// the high bits are used: Steele and Vigna, "Computationally easy, spectrally good
// multipliers for congruential pseudorandom number generators", 2021.
const chanceMultiplier = 0xf1357aea2e62a9c5

// top is a shard's part of Top.
type top struct {
	period int64 // of topPeriodNs, counted from the beginning of limiter time
	of     [numVerdicts]sketch
}

// Heavy is a key with what was decided about it, in units: all of the last minute,
// half of the minute before, a quarter of the one before that, and so on.
type Heavy struct {
	Key   []byte
	Units int64
	// Error is how many of the units may be other keys': at most a 32nd of what the
	// key's shard has counted.
	Error int64
}

// weigh counts units admitted or denied to a key.
func (s *shard) weigh(c *cell, units int64, v Verdict) {
	s.chance *= chanceMultiplier
	if s.chance>>s.fine[v] < uint64(units) {
		s.sample(c, units, v)
	}
}

// weight is how many units a decision is about.
func (op *Op) weight(d *Decision) int64 {
	if op.Partial && d.Allowed > 0 {
		return d.Allowed
	}
	return op.Cost
}

// verdict is whether a decision admitted something.
func (d *Decision) verdict() Verdict {
	if d.Allowed > 0 {
		return Admitted
	}
	return Denied
}

// weighBlocked counts a check that an administrative block of a key denies.
func (s *shard) weighBlocked(h uint64, key []byte, op *Op) {
	if op.counts() {
		s.weigh(&cell{hash: h, key: key}, op.Cost, Denied)
	}
}

// sample writes units that it was decided to take into their sketch.
func (s *shard) sample(c *cell, units int64, v Verdict) {
	if s.top == nil {
		s.top = &top{period: s.nowNs / topPeriodNs}
	}
	s.fade()
	k, coarse := &s.top.of[v], 64-s.fine[v]
	k.add(c.hash, c.key, min(max(units, 1<<coarse), topMost-k.total))
	for k.total>>coarse > 2*topSample {
		coarse++
	}
	s.fine[v] = 64 - coarse
}

// fade lets what was counted count less with time.
func (s *shard) fade() {
	period := s.nowNs / topPeriodNs
	halvings := min(period-s.top.period, 63)
	if halvings <= 0 {
		return
	}
	s.top.period = period
	for v := range s.top.of {
		s.top.of[v].halve(int(halvings))
		s.fine[v] = uint8(min(int64(s.fine[v])+halvings, 64))
	}
}

// Top returns up to n keys with the most units admitted or denied of late, the
// heaviest first. Limiters of policies stand there by their own names: a check counts
// once for each of its policies under the first limit when it is admitted, and under
// the limit that binds when it is denied. A key that is blocked counts by itself.
//
// It is a look, and what this table has decided itself: nothing of it is stored.
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
	if s.top == nil {
		return all
	}
	s.look(at)
	s.fade()
	return s.top.of[v].appendTo(all)
}
