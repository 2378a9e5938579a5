package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weir-project/weir/engine"
)

// mix is the traffic on a bounded table for a while: the lengths of keys, and how often each kind of operation comes.
type mix struct {
	shortest, longest int
	weights           [numBoundKinds]int
	total             int
}

// These are the kinds of operations. A kind below boundTakes is a take of the algorithm with this number plus one.
const (
	boundTakes   = int(engine.Strike) // TokenBucket is 1
	kindIncr     = boundTakes
	kindScript   = boundTakes + 1
	kindCheck    = boundTakes + 2
	kindReserve  = boundTakes + 3
	kindComplete = boundTakes + 4
	kindBlock    = boundTakes + 5
	kindDelete   = boundTakes + 6
	kindGive     = boundTakes + 7 // refunds and releases

	numBoundKinds = boundTakes + 8
)

// newMix draws a mix of all kinds or a few, with keys of one length or of many.
func newMix(rng *rand.Rand) (m mix) {
	m.shortest = 1 + rng.IntN(engine.MaxKeyLen)
	m.longest = m.shortest + rng.IntN(engine.MaxKeyLen-m.shortest+1)
	switch rng.IntN(4) {
	case 0:
		m.shortest, m.longest = 1, engine.MaxKeyLen
	case 1:
		m.longest = m.shortest
	}
	few := rng.IntN(2) == 0
	for kind := range m.weights {
		if m.weights[kind] = 1 + rng.IntN(8); few && rng.IntN(3) > 0 {
			m.weights[kind] = 0
		}
	}
	m.weights[rng.IntN(boundTakes)] += 4
	for _, w := range m.weights {
		m.total += w
	}
	return m
}

// boundTraffic makes operations of a mix. Its keys need more memory than there is.
type boundTraffic struct {
	*rand.Rand
	mix
	keys      int
	permanent int // blocks and holds at a time, which are never evicted
	nowNs     int64
	pool      []byte
	used      []byte // of the current batch
	script    []engine.Script
	incr      engine.Incr
	holds     int
}

const (
	boundHourNs       = int64(3600e9)
	boundBatch        = 128
	boundHoldNs       = int64(2e9)
	boundPermanentDen = 16 << 10 // bytes of the bound for each block and hold, which together take a tenth
)

func newBoundTraffic(seed uint64, bound int64, keys int) *boundTraffic {
	b := &boundTraffic{
		Rand: rand.New(rand.NewPCG(seed, 22)), keys: keys, permanent: int(bound / boundPermanentDen), nowNs: 1e18,
	}
	b.pool = make([]byte, engine.MaxKeyLen)
	for i := range b.pool {
		b.pool[i] = byte('a' + i%26)
	}
	for _, id := range []engine.ScriptID{engine.RedisRateAllowN, engine.LimitsIncr, engine.NestHit, engine.SlidingSet} {
		b.script = append(b.script,
			engine.Script{ID: id, Args: [engine.MaxScriptArgs]float64{5, 60_000, 60, 60_000, 1}})
	}
	b.incr = engine.Incr{By: 1, Upper: 1 << 40, Expire: engine.ExpireIn, ExpireNs: boundHourNs}
	b.mix = newMix(b.Rand)
	return b
}

// policies returns the policies that checks and holds use.
func (b *boundTraffic) policies() (ops []engine.Op) {
	for i, limits := range [][]engine.Limit{
		{bucketOf(1, 60e9, 50)},
		{windowOf(engine.SlidingLog, boundHourNs, 200), windowOf(engine.FixedWindow, 600e9, 100), bucketOf(1, 1e9, 10)},
	} {
		var p engine.Policy
		for _, l := range limits {
			p.Limits = append(p.Limits, engine.PolicyLimit{Limit: l})
		}
		ops = append(ops, setPolicy(fmt.Sprint("p", i), p))
	}
	return ops
}

// bytes returns n bytes that stay valid until the next batch.
func (b *boundTraffic) bytes(n int) []byte {
	from := len(b.used)
	b.used = b.used[:from+n]
	return b.used[from : from+n : from+n]
}

// key returns a key of a kind. Its length depends only on its number, as with a real client.
func (b *boundTraffic) key(kind, number int) []byte {
	var name [24]byte
	head := fmt.Appendf(name[:0], "%c%x", 'A'+kind, number)
	spread := uint64(number) * 0x9e3779b97f4a7c15 >> 33
	n := max(b.shortest+int(spread%uint64(b.longest-b.shortest+1)), len(head))
	key := b.bytes(n)
	copy(key, b.pool)
	copy(key, head)
	return key
}

// batch fills ops with operations of the mix.
func (b *boundTraffic) batch(ops []engine.Op) {
	if b.used == nil {
		b.used = make([]byte, 0, len(ops)*(3*engine.MaxKeyLen+256))
	}
	b.used = b.used[:0]
	b.nowNs += b.Int64N(20e6)
	for i := range ops {
		at := b.IntN(b.total)
		kind := 0
		for at >= b.weights[kind] {
			at -= b.weights[kind]
			kind++
		}
		ops[i] = b.op(kind)
	}
}

func (b *boundTraffic) op(kind int) (op engine.Op) {
	op = engine.Op{Key: b.key(kind, b.IntN(b.keys)), Cost: 1 + b.Int64N(3)}
	switch kind {
	case kindIncr:
		op.Code, op.Incr = engine.OpIncr, &b.incr
	case kindScript:
		i := b.IntN(len(b.script))
		op.Key[0] = byte('0' + i)
		op.Code, op.Script = engine.OpScript, &b.script[i]
	case kindCheck, kindReserve:
		op.Text = []byte("p0")
		if b.IntN(2) == 0 {
			op.Text = []byte("p1")
			op.Also = []engine.Pair{{Policy: []byte("p0"), Key: b.key(kindCheck, b.IntN(b.keys))}}
		}
		if op.Code = engine.OpCheck; kind == kindReserve {
			op.Code, op.TTLNs, op.ID = engine.OpReserve, b.Int64N(boundHoldNs), b.holdID(b.holds)
			if b.holds++; op.HoldBytes() > engine.MaxHoldBytes {
				op.Also = nil
			}
		}
	case kindComplete:
		op.Code = []engine.OpCode{engine.OpCommit, engine.OpCancel}[b.IntN(2)]
		op.Key = b.holdID(b.IntN(b.permanent))
	case kindBlock:
		op.Key = b.key(kindBlock, b.IntN(b.permanent))
		op.Code, op.TTLNs, op.Text = engine.OpBlock, b.Int64N(boundHoldNs), b.pool[:b.IntN(engine.MaxReasonLen)]
	case kindDelete:
		op.Code = engine.OpReset
		op.Key = b.key(b.IntN(boundTakes), b.IntN(b.keys))
	case kindGive:
		kind = b.IntN(boundTakes)
		op.Code, op.Key, op.Text = engine.OpRefund, b.key(kind, b.IntN(b.keys)), b.pool[:1]
		if kind+1 == int(engine.Concurrency) {
			op.Code = engine.OpRelease
		}
	default:
		b.take(&op, engine.Algorithm(kind+1))
	}
	return op
}

func (b *boundTraffic) holdID(n int) []byte {
	return fmt.Appendf(b.bytes(24)[:0], "hold%d", n%b.permanent)
}

// take makes an operation a take with one of a few limits, and sometimes with an ID. A few keys have long logs and
// many holders.
func (b *boundTraffic) take(op *engine.Op, a engine.Algorithm) {
	windowNs := []int64{1e9, 60e9, boundHourNs}[b.IntN(3)]
	heavy := op.Key[1] == '1' && len(op.Key) < 64
	most := int64(20 + 10*b.IntN(3))
	if heavy {
		most = 100_000
	}
	op.Limit = engine.Limit{Algorithm: a, WindowNs: windowNs, Max: most}
	switch a {
	case engine.TokenBucket, engine.LeakyBucket:
		op.Limit = engine.Limit{Algorithm: a, Rate: engine.Rate{Units: 1, PerNs: windowNs / most}, Max: most}
	case engine.FixedWindow:
		op.Limit.Mode = engine.FromFirst
	case engine.Concurrency:
		op.Limit.WindowNs, op.TTLNs = 0, windowNs
		op.Text = b.pool[b.IntN(26):][:1+b.IntN(engine.MaxHolderLen)]
	case engine.Strike:
		op.Limit.Steps = boundSteps
		op.Limit.Max = 20
	}
	if b.IntN(4) == 0 {
		op.ID = fmt.Appendf(b.bytes(24)[:0], "id%d", b.Int())
	}
}

var boundSteps = engine.MakeSteps([]engine.Step{{Threshold: 5, PenaltyNs: 1e9}, {Threshold: 20, PenaltyNs: 60e9}})

// offenders are keys of all lengths that have used up a limit of a day. Nothing else in the traffic is as far from
// idle.
type offenders struct {
	keys  [][]byte
	limit engine.Limit
}

func newOffenders(n int) *offenders {
	o := &offenders{limit: windowOf(engine.FixedWindow, 24*boundHourNs, 10)}
	o.limit.Mode = engine.FromFirst
	for i := range n {
		key := fmt.Appendf(nil, "offender %d ", i)
		o.keys = append(o.keys, slices.Concat(key, make([]byte, i*37%(engine.MaxKeyLen-len(key)))))
	}
	return o
}

// ask asks for units of each offender, and returns how many were admitted.
func (o *offenders) ask(table *engine.Table, nowNs, units int64) (admitted int) {
	for _, key := range o.keys {
		op := engine.Op{Key: key, Limit: o.limit, Cost: units}
		admitted += int(decideOne(table, step{engine.Stamp{NowNs: nowNs}, op}).Allowed)
	}
	return admitted
}
