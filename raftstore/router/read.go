package router

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/away"
)

// reads are the reads of a Router. Those of a Router itself are of the groups on this node.
type reads struct {
	of      *Router
	reading *reading // reads of all groups; nil: groups that are away are not read
}

// reading is a run of reads of all groups, of one caller.
type reading struct {
	// began are the groups as they were at the begin. A replica that arrives later is not read: the caller may have
	// asked for the read index when the group was away, and this node made none.
	began  []replica
	failed func(error)
	err    error // the first error
}

func (r *reading) fail(err error) {
	r.err = err
	r.failed(err)
}

var _ limiter.State = reads{}

// Reading implements limiter.Spread.
func (r *Router) Reading(failed func(error)) limiter.State {
	return reads{r, &reading{began: r.all(), failed: failed}}
}

// readable returns a group, or nil if it has ended on this node, or is away and not read. After a read has failed, no
// group that is away is read: each might take as long.
func (r reads) readable(number int) away.State {
	switch m := r.of.all()[number]; {
	case m.live != nil && (r.reading == nil || m.away == nil || m.live == r.reading.began[number].live):
		return m.live
	case m.away != nil && r.reading != nil && r.reading.err == nil:
		return m.away.Reading(r.reading.fail)
	}
	return nil
}

// isAway reports whether a group is read from another node.
func (r reads) isAway(number int) bool {
	if number >= len(r.of.all()) {
		return false
	}
	_, isAway := r.readable(number).(away.Reads)
	return isAway
}

// each visits the groups that are read, with their numbers.
func (r reads) each() iter.Seq2[int, away.State] {
	return func(visit func(int, away.State) bool) {
		for i := range r.of.all() {
			if g := r.readable(i); g != nil && !visit(i, g) {
				return
			}
		}
	}
}

// Now returns the stamp of a decision in the first group that has not ended. The clocks of the groups differ by
// milliseconds.
func (r *Router) Now() engine.Stamp { return r.base().Now() }

// Inspect describes a key; see limiter.Limiter.
//
// The group does not check the slot of a read. It need not: the number of groups is fixed when the cluster is founded,
// and each node reads it from its directory. So no map is stale, and no read reaches another group.
func (r reads) Inspect(key []byte) (engine.Info, bool) {
	if g := r.readable(r.of.groupOf(key)); g != nil {
		return g.Inspect(key)
	}
	return engine.Info{}, false
}

// Len returns the number of keys of a database in all groups. A block everywhere counts in the group of its key.
func (r reads) Len(database int) (n int64) {
	for _, g := range r.each() {
		n += g.Len(database)
	}
	return n
}

// LenOf returns the number of keys of a database in the slots of a group.
func (r *Router) LenOf(slot uint16, database int) int64 {
	if g := r.Group(r.ofSlot(slot)); g != nil {
		return g.Len(database)
	}
	return 0
}

// ownBits is how many bits of a cursor of Scan are the group's own cursor. Those above are the number of the group. A
// cursor has 53 bits at most, which a JavaScript number can represent.
const ownBits = engine.CursorBits

// Scan visits the keys of one group after the other; see engine.Table.Scan. It visits either groups of this node or one
// other group: the caller may not need the others, and a step of a scan should not take long.
func (r reads) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	number, own := int(cursor>>ownBits), cursor&(1<<ownBits-1)
	if number >= len(r.of.all()) { // of an older version: see engine.Table.Scan
		number, own = 0, 0
	}
	for number < len(r.of.all()) {
		g := r.readable(number)
		if g == nil {
			number, own = number+1, 0
			continue
		}
		own = g.Scan(own, count, func(key []byte, a engine.Algorithm) {
			if r.of.groupOf(key) == number { // every group has the blocks everywhere
				count--
				visit(key, a)
			}
		})
		_, isAway := g.(away.Reads)
		if own == 0 {
			number++
		}
		if count <= 0 || isAway || r.isAway(number) {
			break
		}
	}
	if number >= len(r.of.all()) {
		return 0
	}
	return uint64(number)<<ownBits | own
}

// RandomKey returns a random key of a database in a random group, or nil if no group has one. A group with more keys is
// chosen more often.
func (r reads) RandomKey(database int) []byte {
	var picked away.State
	var total int64
	for _, g := range r.each() {
		n := g.Len(database)
		if total += n; n > 0 && rand.Int64N(total) < n {
			picked = g
		}
	}
	if picked == nil {
		return nil
	}
	return picked.RandomKey(database)
}

// Holds lists the open holds under a policy and a key; see engine.Table.Holds.
func (r reads) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	if g := r.readable(r.of.groupOf(key)); g != nil {
		return g.Holds(policy, key, cursor, count)
	}
	return nil, 0
}

// BlocksEverywhere reads the blocks everywhere.
func (r reads) BlocksEverywhere() engine.BlocksEverywhere { return r.of.base().BlocksEverywhere() }

// FromBlock describes the block of an address.
func (r reads) FromBlock(key []byte) engine.FromBlock { return r.of.base().FromBlock(key) }

// Top returns the heaviest keys of all groups; see engine.Table.Top.
func (r reads) Top(v engine.Verdict, n int) (all []engine.Heavy) {
	for _, g := range r.each() {
		all = append(all, g.Top(v, n)...)
	}
	slices.SortStableFunc(all, func(a, b engine.Heavy) int { return cmp.Compare(b.Units, a.Units) })
	return all[:min(n, len(all))]
}

// Policies returns the policies in force in the first group, which decides about them. If that group has ended here,
// another group answers.
func (r reads) Policies() *engine.Policies { return r.of.base().Policies() }

// Events reads the log of events of a group. Each group counts its own.
func (r reads) Events(group int, after uint64, n int) (
	[]engine.Event, engine.EventsPosition, <-chan struct{},
) {
	if g := r.readable(group); g != nil {
		return g.Events(group, after, n)
	}
	return nil, engine.EventsPosition{First: 1}, nil
}

// EventsBefore returns the cursor of the newest event of a group before a time.
func (r reads) EventsBefore(group int, atMs int64) uint64 {
	if g := r.readable(group); g != nil {
		return g.EventsBefore(group, atMs)
	}
	return 0
}

// Stats returns the sums of the statistics of all groups.
func (r *Router) Stats() (sum engine.Stats) {
	for _, g := range r.live() {
		s := g.Stats()
		sum.Add(&s)
	}
	return sum
}

// Save takes a snapshot of one group after the other, so that only one group at a time loads the disk. It stops at the
// first error.
func (r *Router) Save() error { return r.Snapshot() }

// LastSave returns the oldest of the groups' last save times, or the zero time if a group was never saved. Groups that
// have ended do not count.
func (r *Router) LastSave() (oldest time.Time) {
	oldest = r.base().LastSave()
	for _, g := range r.live() {
		if at := g.LastSave(); at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// Clear deletes everything but the policies in all groups. If some groups fail, the error says how many are empty. The
// first group lifts the blocks everywhere, and the others follow.
func (r *Router) Clear() error { return r.empty(reachable.Clear) }

// empty empties all groups, and then gives each the shared items of the first group again.
func (r *Router) empty(one func(reachable) error) error {
	if err := joinResults(r.forAll(func(_ int, g reachable) error { return one(g) })); err != nil {
		return err
	}
	want, known := r.sharedAt(math.MaxUint64)
	err := joinResults(r.forAll(func(i int, g reachable) error {
		switch {
		case i == 0:
			return nil
		case known != nil:
			return known
		}
		return r.bringAnywhere(g, want)
	}))
	if err == nil && known == nil {
		r.noteAdopted(want.Version)
	}
	return err
}

// ClearDatabase deletes everything of one database but the blocks everywhere in all groups. If some groups fail, the
// error says how many are empty.
func (r *Router) ClearDatabase(database int) error {
	if database == 0 { // a group with an old member clears everything
		return r.empty(func(g reachable) error { return g.ClearDatabase(0) })
	}
	return joinResults(r.forAll(func(_ int, g reachable) error { return g.ClearDatabase(database) }))
}

// Advance moves the test clocks of all groups forward.
func (r *Router) Advance(d time.Duration) bool {
	moved := true
	for i := range r.all() {
		if g, err := r.at(i); err == nil {
			moved = g.Advance(d) && moved
		}
	}
	return moved
}
