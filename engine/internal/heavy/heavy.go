package heavy

import "math"

// A counter keeps two sketches of keys: one counts admitted units, the other denied units. Sketches do not affect
// limits. They are not part of StateHash, are not drained, and reading them changes no answer.
//
// A sketch costs a decision almost nothing, because it counts a sample of the units. At first the sample has every
// unit. As counts grow, it has one unit in n for n = 2, 4, 8 and so on, and each counts n. A cost from n on counts in
// full. This is threshold sampling (Duffield, Lund and Thorup, "Learn more, sample less", IEEE Transactions on
// Information Theory 51(5), 2005), whose estimates are unbiased.

// Verdict selects what Top counts: admitted or denied units.
type Verdict uint8

// The verdicts.
const (
	Admitted Verdict = iota
	Denied
	numVerdicts
)

const (
	// topPeriodNs is the half-life of counts.
	topPeriodNs = int64(60e9)
	// topSample bounds the units that one sample represents: a sketch with w units takes samples of at most
	// w/topSample units. The standard deviation of a key's count c is then below sqrt(c*w)/64. Up to w = 8192
	// the sample has every unit.
	topSample = 4096
	// topMost bounds the units of a sketch, so that sums fit 64 bits. Units beyond topMost are not counted. A sketch
	// reaches it by hundreds of operations with the largest cost in a minute.
	topMost = math.MaxInt64 / 8
)

// chanceMultiplier is the multiplier of a multiplicative congruential generator modulo 2^64. Weigh uses its high
// bits. See Steele and Vigna, "Computationally easy, spectrally good multipliers for congruential pseudorandom
// number generators", 2021.
const chanceMultiplier = 0xf1357aea2e62a9c5

// top has the sketches of a shard, which engine.Table.Top reads.
type top struct {
	period int64 // the number of the current period of topPeriodNs, from limiter time 0
	of     [numVerdicts]sketch
}

// Hitter is a key with its decided units. The units of the current minute count in full, those of the minute before
// by half, those of the minute before that by a quarter, and so on.
type Hitter struct {
	Key   []byte
	Units int64
	// Error is how many of the units may belong to other keys: at most a 32nd of the units that the key's shard
	// has counted.
	Error int64
}

// Counter counts the units of the keys of one shard.
type Counter struct {
	chance uint64             // the last random number
	fine   [numVerdicts]uint8 // 64 minus the binary logarithm of the units that one sample represents
	top    *top               // nil until the first sample
}

// NewCounter returns an empty counter.
func NewCounter() Counter {
	return Counter{chance: 1, fine: [numVerdicts]uint8{64, 64}}
}

// Weigh counts units admitted or denied to a key.
func (n *Counter) Weigh(nowNs int64, hash uint64, key []byte, units int64, v Verdict) {
	n.chance *= chanceMultiplier
	if n.chance>>n.fine[v] < uint64(units) {
		n.sample(nowNs, hash, key, units, v)
	}
}

// sample adds units that were selected for sampling to their sketch.
func (n *Counter) sample(nowNs int64, hash uint64, key []byte, units int64, v Verdict) {
	if n.top == nil {
		n.top = &top{period: nowNs / topPeriodNs}
	}
	n.fade(nowNs)
	k, coarse := &n.top.of[v], 64-n.fine[v]
	k.add(hash, key, min(max(units, 1<<coarse), topMost-k.total))
	for k.total>>coarse > 2*topSample {
		coarse++
	}
	n.fine[v] = 64 - coarse
}

// fade halves the counts as time passes.
func (n *Counter) fade(nowNs int64) {
	period := nowNs / topPeriodNs
	halvings := min(period-n.top.period, 63)
	if halvings <= 0 {
		return
	}
	n.top.period = period
	for v := range n.top.of {
		n.top.of[v].halve(int(halvings))
		n.fine[v] = uint8(min(int64(n.fine[v])+halvings, 64))
	}
}

// AppendTo appends the keys whose counts are not zero at a time.
func (n *Counter) AppendTo(all []Hitter, nowNs int64, v Verdict) []Hitter {
	if n.top == nil {
		return all
	}
	n.fade(nowNs)
	return n.top.of[v].appendTo(all)
}
