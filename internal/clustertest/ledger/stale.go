package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"
)

var (
	// ErrUnderstated reports that a stale read is older than the age in its reply.
	ErrUnderstated = errors.New("staleness understated")
	// ErrNotTaken reports that a stale read counts units that nobody had asked for.
	ErrNotTaken = errors.New("a stale read counts units that nobody took")
)

// StaleRead is one read of a counter by one node alone, with its age.
type StaleRead struct {
	At               string // the node
	CallNs, ReturnNs int64
	Used             int64
	Age              time.Duration
}

// sinceNs returns the time after which the read may lack grants.
func (r *StaleRead) sinceNs() int64 { return r.CallNs - int64(r.Age) }

// Staleness compares the ages of reads with the grants that the reads lack. A read with age a counts every grant that
// was acknowledged before its call minus a, and no unit that was requested after its return. Staleness returns how many
// reads report less than their true age. Nobody gives units of the counter back.
func Staleness(ops []Op, reads []StaleRead) (understated int, err error) {
	grants := slices.DeleteFunc(slices.Clone(ops), func(op Op) bool { return op.Granted() == 0 })
	slices.SortFunc(grants, func(a, b Op) int { return cmp.Compare(a.ReturnNs, b.ReturnNs) })
	sums := make([]int64, len(grants)+1) // of the earlier grants
	for i, op := range grants {
		sums[i+1] = sums[i] + op.Granted()
	}
	var worst time.Duration
	for _, r := range reads {
		if most := requested(ops, r.ReturnNs); r.Used > most {
			err = cmp.Or(err, fmt.Errorf("%w: at %v %s counts %d of at most %d", ErrNotTaken,
				time.Duration(r.CallNs), r.At, r.Used, most))
		}
		known := sums[sort.Search(len(grants), func(i int) bool { return grants[i].ReturnNs >= r.sinceNs() })]
		if r.Used >= known {
			continue
		}
		understated++
		lacks := sort.Search(len(grants), func(i int) bool { return sums[i+1] > r.Used })
		if by := time.Duration(r.sinceNs() - grants[lacks].ReturnNs); by >= worst {
			worst = by
			err = fmt.Errorf("%w: at %v %s tells %v and counts %d; %d were acknowledged before, the first it "+
				"lacks %v before", ErrUnderstated, time.Duration(r.CallNs), r.At, r.Age, r.Used, known, by)
		}
	}
	return understated, err
}

// requested returns the units that clients had asked for until a time.
func requested(ops []Op, tillNs int64) (units int64) {
	for i := range ops {
		if ops[i].Verb == Take && ops[i].CallNs <= tillNs {
			units += ops[i].Units
		}
	}
	return units
}
