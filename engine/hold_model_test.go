package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/weir-project/weir/engine"
)

// holdModel is the simple model of holds. Every limiter is a list of taken units, with their hold and time. Returned
// units are removed from the list.
type holdModel struct {
	policies map[string][]engine.Limit
	limiters map[string]*heldLimiter
	holds    map[string]*heldHold
	// extensions are those that were carried out, by hold and ID.
	extensions map[string]extension
	records    map[string]bool      // whether a policy has RECORD
	events     []string             // since the last look
	read       uint64               // the cursor of the last look
	modes      map[string]*heldMode // by policy
}

func newHoldModel(policies map[string][]engine.Limit) *holdModel {
	return &holdModel{policies: maps.Clone(policies), limiters: map[string]*heldLimiter{},
		holds: map[string]*heldHold{}, extensions: map[string]extension{}, records: maps.Clone(modelRecords)}
}

type extension struct {
	op      engine.Op
	answer  engine.Decision
	untilNs int64
}

// heldUnits are units that one operation took from a limiter. For a bucket they are the part that has not drained.
type heldUnits struct {
	units *big.Rat
	of    *heldPart // the part of the hold, or nil for none
	atNs  int64
}

// heldPart is units that a hold took at once. units are those that were not reported as used.
type heldPart struct{ units int64 }

type heldLimiter struct {
	limit engine.Limit
	list  []heldUnits            // in the order of taking
	parts map[string][]*heldPart // by hold, in the order of taking
	nowNs int64
	endNs int64 // the end of a window that begins with the first request
}

type heldHold struct {
	op           engine.Op
	answer       engine.Decision
	endsNs       int64
	forgetNs     int64
	phase        string
	actual, left int64
	total        int64
	extensions   int64
	sources      []*heldSource
	records      bool // under a policy with RECORD when it took units
}

// pass advances a limiter to a time.
func (l *heldLimiter) pass(nowNs int64) {
	drained := times(perNs1(l.limit), num(nowNs-l.nowNs))
	startNs := l.windowStart(nowNs)
	l.nowNs = nowNs
	switch l.limit.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		for len(l.list) > 0 && drained.Sign() > 0 {
			d := drained
			if l.list[0].units.Cmp(d) <= 0 {
				d = l.list[0].units
				l.list = l.list[1:]
			} else {
				l.list[0].units = minus(l.list[0].units, d)
			}
			drained = minus(drained, d)
		}
	case engine.SlidingCounter:
		startNs -= l.limit.WindowNs
		fallthrough
	default:
		l.list = slices.DeleteFunc(l.list, func(x heldUnits) bool { return x.atNs < startNs })
	}
}

func perNs1(l engine.Limit) *big.Rat {
	if l.Rate.PerNs == 0 {
		return num(0)
	}
	return perNs(l.Rate)
}

// windowStart returns the first instant that still counts.
func (l *heldLimiter) windowStart(nowNs int64) int64 {
	switch {
	case l.limit.Algorithm == engine.SlidingLog:
		return nowNs - l.limit.WindowNs + 1
	case l.limit.Mode == engine.FromFirst && nowNs >= l.endNs:
		return nowNs
	case l.limit.Mode == engine.FromFirst:
		return l.endNs - l.limit.WindowNs
	case l.limit.Mode == engine.Forever:
		return 0
	}
	return nowNs - nowNs%max(l.limit.WindowNs, 1)
}

// used returns the units that count now.
func (l *heldLimiter) used() *big.Rat {
	sum := num(0)
	startNs := l.windowStart(l.nowNs)
	before := num(0)
	for _, x := range l.list {
		if l.limit.Algorithm == engine.SlidingCounter && x.atNs < startNs {
			before = plus(before, x.units)
			continue
		}
		sum = plus(sum, x.units)
	}
	return plus(sum, times(before, frac(startNs+max(l.limit.WindowNs, 1)-l.nowNs, max(l.limit.WindowNs, 1))))
}

func (l *heldLimiter) left() *big.Rat {
	most := l.limit.Max
	if l.limit.Algorithm == engine.LeakyBucket {
		most++
	}
	return minus(num(most), l.used())
}

func (l *heldLimiter) take(n int64, by string) {
	if n == 0 {
		return
	}
	if l.limit.Mode == engine.FromFirst && l.used().Sign() == 0 {
		l.endNs = l.nowNs + l.limit.WindowNs
	}
	x := heldUnits{num(n), nil, l.nowNs}
	if by != "" {
		x.of = &heldPart{n}
		l.parts[by] = append(l.parts[by], x.of)
	}
	l.list = append(l.list, x)
}

// give gives back n units of a hold, those taken last first. The hold can then give back no more of the units that it
// took here.
func (l *heldLimiter) give(by string, n int64) {
	for _, part := range slices.Backward(l.parts[by]) {
		back := min(n, part.units)
		n -= back
		for i := range l.list {
			if x := &l.list[i]; x.of == part {
				x.units, x.of = positive(minus(x.units, num(back))), nil
			}
		}
	}
	delete(l.parts, by)
	l.list = slices.DeleteFunc(l.list, func(x heldUnits) bool { return x.units.Sign() == 0 })
}

// use records that all but n units of a hold were used. Those taken last were not.
func (l *heldLimiter) use(by string, n int64) {
	for _, part := range slices.Backward(l.parts[by]) {
		part.units = min(n, part.units)
		n -= part.units
	}
}

func (m *holdModel) limitersOf(nowNs int64, pairs []engine.Pair) (list []*heldLimiter) {
	for _, p := range pairs {
		for i, limit := range m.policies[string(p.Policy)] {
			name := fmt.Sprint(string(p.Policy), i, string(p.Key))
			l := m.limiters[name]
			if l == nil {
				l = &heldLimiter{limit: limit, nowNs: nowNs, parts: map[string][]*heldPart{}}
				m.limiters[name] = l
			}
			l.pass(nowNs)
			list = append(list, l)
		}
	}
	return list
}

func pairsOf(op *engine.Op) []engine.Pair {
	return append([]engine.Pair{{Policy: op.Text, Key: op.Key}}, op.Also...)
}

// endHolds returns the units of expired holds, one hold after another, each at its end.
func (m *holdModel) endHolds(nowNs int64) {
	ended := []*heldHold{}
	for id, x := range m.holds {
		if x.phase == "open" && x.endsNs <= nowNs {
			ended = append(ended, x)
		}
		if x.forgetNs <= nowNs && !x.untold() {
			delete(m.holds, id)
		}
	}
	slices.SortFunc(ended, func(a, b *heldHold) int { return cmp.Compare(a.endsNs, b.endsNs) })
	for _, x := range ended {
		x.phase = "ended"
		for _, l := range m.limitersOf(x.endsNs, pairsOf(&x.op)) {
			if !x.op.Keep {
				l.give(string(x.op.ID), x.total)
			}
			delete(l.parts, string(x.op.ID))
		}
	}
}

func least(list []*heldLimiter) int64 {
	left := int64(engine.MaxUnits)
	for _, l := range list {
		left = min(left, whole(l.left()))
	}
	return left
}

// do runs one operation. For a denial it returns no numbers.
func (m *holdModel) do(at engine.Stamp, op *engine.Op) engine.Decision {
	m.endHolds(at.NowNs)
	switch op.Code {
	case engine.OpReserve, engine.OpCheck:
		return m.take(at.NowNs, op)
	case engine.OpCommit:
		return m.commit(at.NowNs, op)
	case engine.OpExtend:
		return m.extend(at.NowNs, op)
	case engine.OpEnd:
		return engine.Decision{Allowed: one(m.tellEnd(m.holds[string(op.Key)]))}
	case engine.OpCancel:
		x := m.holds[string(op.Key)]
		if x == nil || x.phase != "open" {
			return engine.Decision{Allowed: one(x != nil && x.phase == "cancelled")}
		}
		for i, back := range x.giveBack(x.total - x.actual) {
			for _, l := range m.limitersOf(at.NowNs, x.sources[i].pairs) {
				l.give(string(op.Key), back)
			}
		}
		m.tell("settled", x, x.actual)
		x.phase, x.forgetNs = "cancelled", at.NowNs+metaLifetimeNs
		return engine.Decision{Allowed: 1}
	case engine.OpRefund, engine.OpReset:
		m.adjust(at.NowNs, op)
	case engine.OpPolicy:
		m.redefine(at.NowNs, op)
	}
	return engine.Decision{}
}

// redefine changes the limits of a policy, for all keys. What was used stays used, and what is held counts as used. A
// bucket is cut to its new size, unless it is in debt.
func (m *holdModel) redefine(nowNs int64, op *engine.Op) {
	name := string(op.Key)
	if m.mode(name).change(op.Policy) {
		return
	}
	m.records[name] = op.Policy.Terms.Record
	limits := slices.Clone(m.policies[name])
	for i := range limits {
		limits[i] = op.Policy.Terms.Limits[i].Limit
	}
	m.policies[name] = limits
	for of, l := range m.limiters {
		for i := range limits {
			if of != fmt.Sprint(name, i, "k0") && of != fmt.Sprint(name, i, "k1") || l.limit == limits[i] {
				continue
			}
			l.pass(nowNs)
			used, debt := l.used(), positive(minus(num(0), l.left()))
			was, bucket := l.limit, l.limit.Algorithm == engine.TokenBucket || l.limit.Algorithm == engine.LeakyBucket
			if l.limit, was.Max = limits[i], limits[i].Max; bucket || was != l.limit {
				for k := range l.list {
					l.list[k].of = nil
				}
			}
			if bucket {
				cut := positive(minus(minus(num(0), l.left()), debt)) // beyond the new size
				l.list = []heldUnits{{minus(used, cut), nil, nowNs}}
			}
		}
	}
}

func (m *holdModel) take(nowNs int64, op *engine.Op) engine.Decision {
	id := string(op.ID)
	if x := m.holds[id]; op.Code == engine.OpReserve && x != nil {
		if fmt.Sprint(pairsOf(op), op.Cost, op.TTLNs, op.Keep, op.Else) !=
			fmt.Sprint(pairsOf(&x.op), x.op.Cost, x.op.TTLNs, x.op.Keep, x.op.Else) {
			return engine.Decision{Status: engine.OtherTerms}
		}
		return x.answer
	}
	pay, last, admitted := m.fund(nowNs, op, op.Cost, op.Partial)
	if !admitted {
		return engine.Decision{}
	}
	m.takeFunded(nowNs, op, pay, id)
	sources := alternativesOf(op)
	d := engine.Decision{Allowed: 1, Remaining: m.remaining(nowNs, sources[last].pairs)}
	if d.Value = paidText(op, func(i int) int64 { return pay[i] }); op.Partial {
		d.Allowed = 0
		for _, n := range pay {
			d.Allowed += n
		}
	}
	if op.Code == engine.OpReserve {
		endsNs := nowNs + op.TTLNs
		for i, s := range sources {
			s.reserved, s.taken = pay[i], pay[i]
		}
		m.holds[id] = &heldHold{op: *op, answer: d, endsNs: endsNs, forgetNs: endsNs + metaLifetimeNs, phase: "open",
			total: op.Cost, sources: sources, records: m.recorded(op)}
	}
	return d
}

func (m *holdModel) commit(nowNs int64, op *engine.Op) engine.Decision {
	x := m.holds[string(op.Key)]
	if x == nil {
		return engine.Decision{Status: engine.NoHold}
	}
	if x.phase == "completed" && op.Keep {
		return engine.Decision{Status: engine.HoldEnded}
	}
	if x.phase == "completed" {
		if x.actual != op.Cost {
			return engine.Decision{Status: engine.OtherTerms}
		}
		return engine.Decision{Allowed: 1, Remaining: x.left}
	}
	switch {
	case op.Cost < x.actual:
		return engine.Decision{Status: engine.OtherTerms}
	case op.Keep && x.phase != "open":
		return engine.Decision{Status: engine.HoldEnded}
	}
	m.tellEnd(x)
	counted := x.actual
	if x.phase == "open" || x.phase != "cancelled" && x.op.Keep {
		counted = x.total
	}
	due := map[*heldSource]int64{}
	switch {
	case counted < x.total:
		due = x.owe(op.Cost - x.actual)
	case op.Cost > x.total:
		due[x.lastSource()] = op.Cost - x.total
	}
	back := x.giveBack(max(x.total-op.Cost, 0))
	for i, s := range x.sources {
		for _, l := range m.limitersOf(nowNs, s.pairs) {
			switch {
			case op.Keep:
				l.use(string(op.Key), back[i])
			case x.phase == "open":
				l.give(string(op.Key), back[i])
			}
		}
		for _, g := range m.groupsOf(nowNs, s.pairs) {
			for _, l := range g.limiters {
				l.take(due[s], "")
			}
		}
		if op.Keep {
			s.taken += due[s]
			s.used = s.taken - back[i]
		}
	}
	left := m.remaining(nowNs, x.lastSource().pairs)
	if op.Keep {
		x.actual, x.total = op.Cost, max(x.total, op.Cost)
		return engine.Decision{Allowed: 1, Remaining: left}
	}
	m.tell("settled", x, op.Cost)
	x.phase, x.actual, x.left, x.forgetNs = "completed", op.Cost, left, nowNs+metaLifetimeNs
	return engine.Decision{Allowed: 1, Remaining: x.left}
}

// extend carries out an OpExtend.
func (m *holdModel) extend(nowNs int64, op *engine.Op) engine.Decision {
	id := string(op.Key) + " " + string(op.ID)
	if first, ok := m.extensions[id]; ok && nowNs < first.untilNs {
		if first.op.Cost != op.Cost || first.op.TTLNs != op.TTLNs || first.op.Partial != op.Partial {
			return engine.Decision{Status: engine.OtherTerms}
		}
		if first.answer.Value = ""; m.holds[string(op.Key)] != nil {
			first.answer.Value = m.holds[string(op.Key)].held()
		}
		return first.answer
	}
	x := m.holds[string(op.Key)]
	switch {
	case x == nil:
		return engine.Decision{Status: engine.NoHold}
	case x.phase != "open":
		return engine.Decision{Status: engine.HoldEnded}
	case op.Extension() != x.extensions+1:
		return engine.Decision{Status: engine.OutOfOrder}
	}
	pay, last, admitted := m.fund(nowNs, &x.op, op.Cost, op.Partial)
	if op.Cost == 0 {
		pay, admitted = make([]int64, len(x.sources)), true
		for last = range x.sources {
			if x.sources[last] == x.lastSource() {
				break
			}
		}
	}
	if !admitted {
		return engine.Decision{Value: x.held()}
	}
	m.takeFunded(nowNs, &x.op, pay, string(op.Key))
	n := int64(0)
	for i, s := range x.sources {
		s.taken, n = s.taken+pay[i], n+pay[i]
	}
	x.extensions, x.total, x.endsNs = x.extensions+1, x.total+n, nowNs+x.op.TTLNs
	if op.TTLNs > 0 {
		x.endsNs = nowNs + op.TTLNs
	}
	x.forgetNs, x.records = x.endsNs+metaLifetimeNs, x.records || m.recorded(&x.op)
	d := engine.Decision{Allowed: 1, Remaining: m.remaining(nowNs, x.sources[last].pairs), Value: x.held()}
	if op.Partial && op.Cost > 0 {
		d.Allowed = n
	}
	m.extensions[id] = extension{*op, d, nowNs + metaLifetimeNs}
	return d
}

// adjust carries out an OpReset, or an OpRefund to a bucket. A refund removes the oldest units first.
func (m *holdModel) adjust(nowNs int64, op *engine.Op) {
	policy, limit, key, _ := engine.SplitName(op.Key)
	m.limitersOf(nowNs, []engine.Pair{{Policy: policy, Key: key}})
	l := m.limiters[fmt.Sprint(string(policy), limit, string(key))]
	if op.Code == engine.OpReset {
		l.list = nil
		return
	}
	given := num(op.Cost)
	for len(l.list) > 0 && given.Sign() > 0 {
		x := &l.list[0]
		if x.units.Cmp(given) > 0 {
			x.units = minus(x.units, given)
			return
		}
		given = minus(given, x.units)
		l.list = l.list[1:]
	}
}
