package chaos

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
	// ErrUntold reports that the reply to a stale read has no age.
	ErrUntold = errors.New("staleness untold")
)

// StaleRead is one read under READONLY of a limit that never refills, with its age.
type StaleRead struct {
	At      string // the node
	CallNs  int64
	Used    int64
	StaleMs int64 // unknownAgeMs: not known
	Untold  bool  // the reply has no age
}

// unknownAgeMs is the age that a node reports if it does not know the age: a hundred years.
const unknownAgeMs = 100 * 365 * 24 * 3600 * 1000

func (r *StaleRead) ageless() bool { return r.StaleMs >= unknownAgeMs }

// sinceNs returns the time after which the read may lack grants.
func (r *StaleRead) sinceNs() int64 { return r.CallNs - r.StaleMs*int64(time.Millisecond) }

// Staleness compares the ages in the replies of reads with the grants that the reads lack. A read with age a counts
// every grant that was acknowledged before its call minus a. Staleness returns how many reads report less than their
// true age. No unit of the limit may have been refunded.
func Staleness(ops []Op, reads []StaleRead) (understated int, err error) {
	grants := slices.DeleteFunc(slices.Clone(ops), func(op Op) bool { return op.grants() == 0 })
	slices.SortFunc(grants, func(a, b Op) int { return cmp.Compare(a.ReturnNs, b.ReturnNs) })
	sums := make([]int64, len(grants)+1) // of the earlier grants
	for i, op := range grants {
		sums[i+1] = sums[i] + op.grants()
	}
	var worst time.Duration
	for _, r := range reads {
		if r.Untold {
			err = cmp.Or(err, fmt.Errorf("%w: by %s at %v", ErrUntold, r.At, time.Duration(r.CallNs)))
			continue
		}
		if r.ageless() {
			continue
		}
		known := sums[sort.Search(len(grants), func(i int) bool { return grants[i].ReturnNs > r.sinceNs() })]
		if r.Used >= known {
			continue
		}
		understated++
		lacks := sort.Search(len(grants), func(i int) bool { return sums[i+1] > r.Used })
		if by := time.Duration(r.sinceNs() - grants[lacks].ReturnNs); by >= worst {
			worst = by
			err = fmt.Errorf("%w: at %v %s tells %d ms and counts %d; %d were acknowledged before, the first it "+
				"lacks %v before",
				ErrUnderstated, time.Duration(r.CallNs), r.At, r.StaleMs, r.Used, known, by)
		}
	}
	return understated, err
}
