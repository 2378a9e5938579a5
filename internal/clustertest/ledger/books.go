package ledger

import (
	"errors"
	"time"
)

// Books is the traffic of policies: checks and holds under several policies (Lasting), policy changes (Swaps), and
// holds that expire (Fleeting).
type Books struct{ Lasting, Swaps, Fleeting Ring }

// NewBooks returns the traffic of a run. A hold of Fleeting lasts from ttl to twice ttl.
func NewBooks(ttl time.Duration) *Books {
	b := &Books{}
	b.Lasting.Traffic, b.Swaps.Traffic, b.Fleeting.Traffic = lasting(), policySwaps(), fleeting(ttl)
	return b
}

// ByGroup makes and judges the histories as several Raft groups demand: a policy change reaches them one after the
// other, so the history of each group is linearizable, and not that of the cluster.
func (b *Books) ByGroup() { b.Swaps.Traffic.OneSetter = true }

// Grow adds alternatives, holds that grow, and events to Lasting.
func (b *Books) Grow() { b.Lasting.Traffic.Grows = true }

// Rings returns all of the traffic.
func (b *Books) Rings() []*Ring { return []*Ring{&b.Lasting, &b.Swaps, &b.Fleeting} }

// Judge returns the problem of one history, or nil. drift is how much faster than the clients' clock the cluster's
// clock may run.
func (b *Books) Judge(ring *Ring, trail *Trail, drift float64) error {
	ops := trail.Ops()
	switch {
	case ring == &b.Swaps && ring.Traffic.OneSetter:
		return LinearizableByGroup(ops)
	case ring != &b.Fleeting:
		return Linearizable(ops)
	}
	var errs []error
	for _, look := range ring.Traffic.Looks(trail) {
		pair := look.Pairs[0]
		errs = append(errs, OverHeld(ring.Traffic.most(pair.Policy), SpansOf(pair, ops, drift)))
	}
	return errors.Join(errs...)
}
