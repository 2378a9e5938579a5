package engine

import (
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine/internal/store"
)

// A request with Else has alternatives, in the order of its pairs: an allowance, else credits. funding finds out which
// of them pay, before any of them is changed. A block of any key denies the request, whatever alternative has the key:
// whoever is blocked must not be served at the cost of another.

// MaxAlternatives bounds the alternatives of a request.
const MaxAlternatives = store.MaxSources

// Alternatives divides the pairs of a request: bit i is set if pair i begins an alternative. Bit 0 is Split, because
// pair 0 always begins the first.
type Alternatives = store.Alternatives

// Split in Alternatives lets several of them pay together.
const Split = store.Split

// funding is how the units of a request are divided among its alternatives. A request without Else has one.
type funding struct {
	k      *checker
	s      *shard
	op     *Op
	groups []group // of all alternatives
	units  store.BySource
	total  int64 // of units
	last   int   // the last alternative that pays; the answer describes it
	looked bool  // the checker is at the last alternative, which pays everything, and found that it has the units
}

// fund divides the units of a request that resolve accepted. If the request is denied, fund fills in the answer and
// returns false. The caller calls done in the end.
func (f *funding) fund(d *Decision) bool {
	f.groups = f.k.groups
	if !f.divide() {
		f.deny(d)
		return false
	}
	return true
}

// done makes the checker usable for other requests.
func (f *funding) done() { f.k.groups, f.k.first = f.groups, 0 }

// turnTo makes the checker decide about one alternative.
func (f *funding) turnTo(i int) {
	first, end := f.op.Else.Pairs(i, len(f.groups))
	f.k.groups, f.k.first = f.groups[first:end], first
}

// divide reports whether the request is admitted. It then knows what each alternative pays.
func (f *funding) divide() bool {
	rest := f.op.Cost
	for i := range f.op.Else.Len() {
		f.turnTo(i)
		if f.k.fits(rest) {
			f.pay(i, rest)
			f.last, f.looked = i, f.total == rest
			return true
		}
		if f.op.Else.Split() {
			rest -= f.pay(i, f.left(rest))
		}
	}
	for i := 0; f.op.Partial && f.total == 0 && i < f.op.Else.Len(); i++ {
		f.turnTo(i)
		f.pay(i, f.left(rest))
	}
	return f.op.Partial && f.total > 0
}

// left returns how many units are left in the alternative of turnTo, at most most.
func (f *funding) left(most int64) int64 { return max(f.k.left(most), 0) }

func (f *funding) pay(i int, units int64) int64 {
	if f.units[i] = units; units > 0 {
		f.last = i
	}
	f.total += units
	return units
}

// deny answers for the alternative that would admit the request soonest, with the first of equals. With Split this is
// the alternative that would soonest have what all others lack. The limits of this alternative count the denial.
func (f *funding) deny(d *Decision) {
	if f.op.Else == 0 {
		if f.op.Partial { // divide has looked at other units
			f.k.look(f.op)
		}
		f.k.deny(f.op, d)
		return
	}
	soonest, waitMs := 0, int64(-1)
	for i := range f.op.Else.Len() {
		f.turnTo(i)
		if now := f.ask(f.lacking(i)).RetryMs; i == 0 || longerWait(waitMs, now) {
			soonest, waitMs = i, now
		}
	}
	if waitMs < 0 && f.op.Else.Split() && !f.op.Partial {
		waitMs = f.together()
	}
	f.turnTo(soonest)
	f.k.look(&Op{Cost: f.lacking(soonest), Partial: f.op.Partial})
	f.k.deny(f.op, d)
	d.RetryMs = waitMs
}

// wait returns how long the request must wait, and changes nothing.
func (f *funding) wait() int64 {
	look, d := *f.op, Decision{}
	look.Dry, f.op = true, &look
	defer f.done()
	if f.fund(&d) {
		return 0
	}
	return d.RetryMs
}

// lacking returns how many units an alternative must have to admit a denied request, if no other gains any.
func (f *funding) lacking(i int) int64 {
	if f.op.Else.Split() {
		return f.op.Cost - f.total + f.units[i]
	}
	return f.op.Cost
}

// ask answers for some units of the alternative of turnTo, and changes nothing.
func (f *funding) ask(units int64) (d Decision) {
	look := Op{Cost: units, Partial: f.op.Partial, Dry: true}
	if _, fits := f.k.look(&look); !fits {
		f.k.deny(&look, &d)
	}
	return d
}

// together returns how long a denied request with Split must wait if no alternative alone can make it fit: until the
// first alternatives have all units that they ever have. It returns -1 if these are too few.
func (f *funding) together() (waitMs int64) {
	rest := f.op.Cost
	for i := 0; rest > 0 && i < f.op.Else.Len(); i++ {
		f.turnTo(i)
		units := min(f.most(), rest)
		now := f.ask(units).RetryMs
		if now < 0 { // what is used stays used
			units, now = min(f.units[i], rest), 0
		}
		rest, waitMs = rest-units, max(waitMs, now)
	}
	if rest > 0 {
		return -1
	}
	return waitMs
}

// most returns how many units the alternative of turnTo can have at most.
func (f *funding) most() int64 {
	most := int64(MaxUnits)
	for _, g := range f.k.groups {
		for i := g.from; i < g.to && !g.policy.Shadow; i++ {
			most = min(most, f.k.parts[i].op.Limit.Max-f.k.parts[i].reserved)
		}
	}
	return most
}

// refusal returns why an alternative that pays cannot hold its units, or OK.
func (f *funding) refusal(id []byte) Status {
	for i := range f.op.Else.Len() {
		if f.pays(i) {
			f.turnTo(i)
			if status := f.k.refusal(id); status != OK {
				return status
			}
		}
	}
	return OK
}

// pays reports whether an alternative pays, or is the only one that admits a request of no units.
func (f *funding) pays(i int) bool { return f.units[i] > 0 || i == f.last }

// spend takes what each alternative pays, and answers. If memory is exhausted it takes nothing. For a new hold x it
// also records the units as allocations.
func (f *funding) spend(d *Decision, x *store.Hold) (changed bool) {
	k, first, delayMs := f.k, f.s.t.evictions(), int64(0)
	memory := first
	for i := range f.op.Else.Len() {
		if !f.pays(i) {
			continue
		}
		if !f.looked {
			if f.turnTo(i); memory != f.s.t.evictions() { // an eviction may have dropped a limiter
				memory = f.s.t.evictions()
				k.reopen()
			}
			k.fits(f.units[i])
		}
		if changed = k.takeUnits(f.s, f.op, f.units[i], d) || changed; d.Status != OK {
			f.undo(i)
			return false
		}
	}
	if x != nil && !f.allocate(f.op.ID, x, first != f.s.t.evictions()) {
		f.s.t.eachAllocation(x, func(s *shard, c *store.Cell, _ int) { s.CompleteAllocations(c, f.op.ID, 0) })
		f.undo(f.op.Else.Len())
		d.Status = OutOfMemory
		return false
	}
	for i := range f.last { // now that all have paid
		if f.units[i] > 0 {
			f.turnTo(i)
			delayMs = max(delayMs, f.count(i))
			k.tellThresholds(f.s, f.op, f.units[i])
		}
	}
	f.turnTo(f.last)
	k.admit(f.s, f.op, f.units[f.last], d)
	if d.RetryMs = max(d.RetryMs, delayMs); f.op.Partial {
		d.Allowed = f.total
	}
	k.tellThresholds(f.s, f.op, f.units[f.last])
	if f.op.Else != 0 {
		d.Value = paidText(f.op.Else, f.units, func(i int) []byte { return f.op.PairAt(i).Policy })
	}
	return changed
}

// count counts what the alternative of turnTo pays for its policies, and returns the longest delay that it asks for.
func (f *funding) count(i int) (delayMs int64) {
	for j := range f.k.groups {
		if g := &f.k.groups[j]; g.from < g.to && f.op.counts() {
			f.k.countOutcome(g, f.s, f.units[i])
		}
	}
	_, delayMs = f.k.leastLeft(false)
	return delayMs
}

// undo gives back what the alternatives before one have paid.
func (f *funding) undo(before int) {
	for i := range before {
		f.turnTo(i)
		f.k.undo(len(f.k.groups)-1, len(f.k.parts), f.units[i])
	}
}

// allocate records the units of each alternative in its limiters, and the limiters in the hold.
func (f *funding) allocate(id []byte, x *store.Hold, evicted bool) (all bool) {
	all = true
	for i := range f.op.Else.Len() {
		if f.units[i] > 0 {
			f.turnTo(i)
			all = f.k.allocate(id, f.units[i], x, evicted) && all
		}
	}
	return all
}

// checkDivided carries out an OpCheck with Else, whose pairs are resolved.
func (s *shard) checkDivided(op *Op, d *Decision) bool {
	if s.checker.strikes {
		d.Status = NotRefundable // whose failure is it?
		return false
	}
	f := funding{k: &s.checker, s: s, op: op}
	defer f.done()
	return f.fund(d) && f.spend(d, nil)
}

// Share is what one alternative pays. Policy is its first.
type Share struct {
	Policy string
	Units  int64
}

// paidText returns the Value of a Decision: the sum of the units, and the Share of each alternative.
func paidText(a Alternatives, units store.BySource, policy func(pair int) []byte) string {
	total := int64(0)
	for _, n := range units {
		total += n
	}
	b := strconv.AppendInt(nil, total, 10)
	for i := range a.Len() {
		first, _ := a.Pairs(i, MaxPairs)
		b = append(append(append(b, ' '), policy(first)...), ' ')
		b = strconv.AppendInt(b, units[i], 10)
	}
	return string(b)
}

// Paid returns how many units an admitted OpCheck or OpReserve with Else took, and under which alternatives. Of an
// OpExtend it returns the units that were taken for the hold so far, and the alternatives if the hold has any.
func (d *Decision) Paid() (total int64, shares []Share) {
	words := strings.Fields(d.Value)
	if len(words) == 0 {
		return 0, nil
	}
	total, _ = strconv.ParseInt(words[0], 10, 64)
	for i := 1; i+1 < len(words); i += 2 {
		units, _ := strconv.ParseInt(words[i+1], 10, 64)
		shares = append(shares, Share{words[i], units})
	}
	return total, shares
}

// bySource returns the units of Paid.
func (d *Decision) bySource() (units store.BySource) {
	_, shares := d.Paid()
	for i, s := range shares {
		units[i] = s.Units
	}
	return units
}
