package engine

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weir-project/weir/engine/internal/events"
	"github.com/weir-project/weir/engine/internal/store"
)

// A limit with Notify writes one event for each threshold that its used units reach. The fixed window keeps the highest
// threshold of which an event was written. So a threshold is reported once in a window, whatever is given back
// meanwhile. A limit that becomes larger reports its thresholds above that number of units, and any other change those
// above that share. Only a decision that takes units reports, and it reports every threshold that the used units have
// then. A limit that becomes smaller, or gets Notify, reports at the next decision.

// The types and bounds of events. Package events documents each of them.
type (
	Event          = events.Event
	EventKind      = events.Kind
	EventsPosition = events.Position
)

// The kinds of events.
const (
	EventThreshold = events.Threshold
	EventSettled   = events.Settled
	EventLockout   = events.Lockout
	EventExpired   = events.Expired
)

// The bounds of the log of events.
const (
	DefaultEventsBytes = events.DefaultBytes
	MinEventsBytes     = events.MinBytes
)

// Thresholds are shares of a limit in percent, 1..100, one byte each. They ascend strictly.
type Thresholds string

// MaxThresholds bounds the thresholds of a limit. One decision may write an event for each of them.
const MaxThresholds = 8

// Valid reports whether a limit may have the thresholds. Empty: none.
func (t Thresholds) Valid() bool {
	last := byte(0)
	for i := range len(t) {
		if t[i] <= last || t[i] > 100 {
			return false
		}
		last = t[i]
	}
	return len(t) <= MaxThresholds
}

// reached returns how many of the thresholds the used units of a limit have reached.
func (t Thresholds) reached(used, limit int64) (n int) {
	for n < len(t) && used*100 >= limit*int64(t[n]) {
		n++
	}
	return n
}

// allLimits returns the limits of the policy and then those of its overrides, with their numbers.
func (p *Policy) allLimits() iter.Seq2[int, *PolicyLimit] {
	return func(yield func(int, *PolicyLimit) bool) {
		n := 0
		each := func(limits []PolicyLimit) bool {
			for i := range limits {
				if !yield(n, &limits[i]) {
					return false
				}
				n++
			}
			return true
		}
		if !each(p.Limits) {
			return
		}
		for i := range p.Overrides {
			if !each(p.Overrides[i].Limits) {
				return
			}
		}
	}
}

func (p *Policy) hasThresholds() bool {
	for _, l := range p.allLimits() {
		if l.Notify != "" {
			return true
		}
	}
	return false
}

// Tells reports whether the policy may write events.
func (p *Policy) Tells() bool { return p.Record || p.hasThresholds() }

// tell adds an event to those of the operation that the shard carries out.
func (s *shard) tell(e Event) {
	e.AtMs = (s.NowNs + s.OffsetNs) / 1e6
	s.told = append(s.told, e)
	s.MarkJoint()
}

// takeTold appends the events of the operation to a list.
func (s *shard) takeTold(list []Event) []Event {
	list = append(list, s.told...)
	s.told = s.told[:0]
	return list
}

// tellThresholds writes the events of a check that took units from the limits of the groups that fit.
func (k *checker) tellThresholds(s *shard, op *Op, units int64) {
	if units == 0 || op.Dry || !s.t.policies.Load().tells {
		return
	}
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.fits; j++ {
			k.parts[j].tellThresholds(s, g.policy, op.ID, units)
		}
	}
}

// tellThresholds writes an event for each threshold that the used units of the part's limit have reached and no event
// of this window reports. The part has just taken units.
func (x *part) tellThresholds(s *shard, p *Policy, id []byte, units int64) {
	if x.of.Notify == "" {
		return
	}
	if x.reopen(); !x.c.Live || x.c.Entry.Kind() != uint8(FixedWindow) {
		return
	}
	w := store.ReadFixed(x.c.Entry.State())
	reached := x.of.Notify.reached(w.Used, x.op.Limit.Max)
	if reached == 0 || x.of.Notify[reached-1] <= w.Told {
		return
	}
	for _, share := range []byte(x.of.Notify[:reached]) {
		if share > w.Told {
			s.tell(Event{
				Kind: EventThreshold, Policy: p.Name, Key: string(x.key()), ID: string(id), Share: int64(share),
				Amount: units, Used: w.Used, Limit: x.op.Limit.Max,
			})
		}
	}
	w.Told = x.of.Notify[reached-1]
	w.Write(x.c.Entry.State())
	x.s.Touched(&x.c)
}

// key returns the key of the part's limiter.
func (x *part) key() []byte { return x.op.Key[len(x.prefix):] }

// tellLockouts writes the events of a check whose strikes locked keys out.
func (k *checker) tellLockouts(s *shard, op *Op, d *Decision) {
	for i := 0; d.Locked>>i != 0; i++ {
		if d.Locked>>i&1 == 0 || !k.groups[i].policy.Record {
			continue
		}
		x := k.lockedBy(&k.groups[i])
		s.tell(Event{
			Kind: EventLockout, Policy: k.groups[i].policy.Name, Key: string(x.key()), ID: string(op.ID),
			Amount: op.Cost, Used: x.d.Limit - x.d.Remaining, Limit: x.d.Limit,
		})
	}
}

// lockedBy returns the first limit of a group for which strikes began the penalty of the last step.
func (k *checker) lockedBy(g *group) *part {
	for j := g.from; j < g.to; j++ {
		if k.parts[j].d.Locked != 0 {
			return &k.parts[j]
		}
	}
	panic("engine: a lockout without a limit")
}

// tellHold writes the events of a hold that has ended with a cost: of each source that it took from, what that source
// paid. The events of a cancelled or expired hold have told what was used until then, so those of a late commit tell
// the rest.
func (s *shard) tellHold(kind EventKind, id []byte, x *store.Hold, cost int64) {
	if !s.t.policies.Load().tells {
		return
	}
	paid, told := x.Paid(cost), x.Told()
	for i := range x.LastSource() + 1 {
		if i == x.LastSource() || x.Sources[i].Taken > 0 {
			pairs := x.SourcePairs(i)
			s.checker.charge(s, pairs, x.High, id, 0)
			s.checker.tellHold(s, kind, id, pairs, paid[i]-told[i])
		}
	}
}

// tellHold writes an event for each policy with Record among some pairs of a hold, which paid units. The limit with
// the fewest units left stands for its policy. charge has made the groups and their parts.
func (k *checker) tellHold(s *shard, kind EventKind, id []byte, pairs []store.HoldPair, units int64) {
	number := 0
	for _, pair := range pairs {
		p := s.policy(pair.Policy)
		if p == nil {
			continue
		}
		g := &k.groups[number]
		if number++; !p.Record {
			continue
		}
		e := Event{Kind: kind, Policy: p.Name, Key: string(pair.Key), ID: string(id), Amount: units}
		if least := k.least(g); least != nil {
			if e.Limit = least.op.Limit.Max; least.c.Live {
				e.Used = least.s.UsedUnits(least.c.Entry)
			}
		}
		s.tell(e)
	}
}

// least returns the limit of a group with the fewest units left, or nil if the group has no limit.
func (k *checker) least(g *group) (least *part) {
	for j := g.from; j < g.to; j++ {
		if x := &k.parts[j]; least == nil || x.d.Remaining < least.d.Remaining {
			least = x
		}
	}
	return least
}

// gather appends the events of the operation that was just carried out to the log. The caller has locked the shards.
func (t *Table) gather(shards []int) {
	if !t.policies.Load().tells {
		return
	}
	var list []Event
	for _, i := range shards {
		list = t.shards[i].takeTold(list)
	}
	t.events.Append(list)
}

// Events returns up to n events after a cursor, the oldest first, and which events the table has. If events after the
// cursor were dropped, it returns those from the oldest on. wake is closed when an event is written after the call.
func (t *Table) Events(after uint64, n int) (list []Event, at EventsPosition, wake <-chan struct{}) {
	return t.events.Read(after, n)
}

// EventsBefore returns the cursor of the newest event before a time in Unix milliseconds, or the last dropped cursor.
func (t *Table) EventsBefore(atMs int64) uint64 { return t.events.Before(atMs) }

// BoundEvents changes the bound of the log of events.
func (t *Table) BoundEvents(bytes int64) { t.events.Bound(bytes) }

// eventClass is the first byte of a storage key of the log of events.
const eventClass = 'e'

func loadedEvent(err error) error {
	if err != nil {
		return ErrStored
	}
	return nil
}

// hashEvents hashes the log of events.
func (t *Table) hashEvents(h *store.Hasher) (sum uint64) {
	t.events.Each(func(key string, value []byte) {
		b := append([]byte{eventClass, byte(len(key))}, key...)
		sum += h.Hash(append(b, value...))
	})
	return sum
}

// batchEvents are the events of a batch. Its operations run in an order that depends on the number of shards, so they
// are sorted before they enter the log.
type batchEvents []opEvents

// opEvents are the events of the operation with a number.
type opEvents struct {
	op   int
	list []Event
}

// add takes the events of an operation that the shard has just carried out. A table without replicas writes them at
// once, under the lock of the shard: between two shards of a batch Drain may stop all decisions.
func (b *batchEvents) add(s *shard, number int, op *Op) {
	switch {
	case op.Code < OpCheck || len(s.told) == 0:
	case s.t.opts.WhenFull != Replica:
		s.t.events.Append(s.takeTold(nil))
	default:
		*b = append(*b, opEvents{number, s.takeTold(nil)})
	}
}

// write appends the events to the log.
func (b batchEvents) write(t *Table) {
	slices.SortFunc(b, func(x, y opEvents) int { return cmp.Compare(x.op, y.op) })
	for i := range b {
		t.events.Append(b[i].list)
	}
}
