package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrOverHeld reports that more slots were held at one instant than exist.
var ErrOverHeld = errors.New("more leases are held than there are slots")

// Hold is the time during which a client certainly held slots: from the return of
// its ACQUIRE to the call of its first RELEASE, and no longer than the lease ran.
type Hold struct {
	Holder         string
	FromNs, TillNs int64
	Units          int64
}

// OverHeld checks that at no instant more than slots units are certainly held.
func OverHeld(slots int64, holds []Hold) error {
	type edge struct {
		atNs, units int64
	}
	var edges []edge
	for _, h := range holds {
		if h.TillNs > h.FromNs {
			edges = append(edges, edge{h.FromNs, h.Units}, edge{h.TillNs, -h.Units})
		}
	}
	// Holds that end at an instant end before those that begin at it.
	slices.SortFunc(edges, func(a, b edge) int {
		if c := cmp.Compare(a.atNs, b.atNs); c != 0 {
			return c
		}
		return cmp.Compare(a.units, b.units)
	})
	var held int64
	for _, e := range edges {
		if held += e.units; held > slots {
			return fmt.Errorf("%w: %d of %d at %v:\n%s", ErrOverHeld, held, slots, time.Duration(e.atNs),
				showHolds(e.atNs, holds))
		}
	}
	return nil
}

func showHolds(atNs int64, holds []Hold) string {
	var b strings.Builder
	for _, h := range holds {
		if h.FromNs <= atNs && atNs < h.TillNs {
			fmt.Fprintf(&b, "  %-12s %d held %v .. %v\n", h.Holder, h.Units, time.Duration(h.FromNs),
				time.Duration(h.TillNs))
		}
	}
	return b.String()
}
