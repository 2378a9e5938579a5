package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// ErrLeaseLost reports that a slot was gone before its expiry, though its holder had not released it.
var ErrLeaseLost = errors.New("a held lease was lost")

// ErrSlotLost reports that a slot was not free after the end of every lease.
var ErrSlotLost = errors.New("a slot is not free though no lease runs")

// leaseKey is the only key of the leases.
const leaseKey = "lease"

// Leases is the history of the leases. Safe for use by several goroutines.
type Leases struct {
	mu    sync.Mutex
	spans []ledger.Span
}

func (l *Leases) add(s ledger.Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, s)
}

// Spans returns the history so far: from the return of each ACQUIRE to the call of its first RELEASE, and no longer
// than the lease ran.
func (l *Leases) Spans() []ledger.Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]ledger.Span(nil), l.spans...)
}

// lease acquires a slot, holds it for a moment and releases it.
func (w *Workload) lease(ctx context.Context, c *Client) {
	holder := c.freshID()
	got := c.Persist(acquireArgs(holder)...)
	figures := got.ints()
	switch {
	case got.Outcome == Refused:
		w.Violations.Add(leaseKey, fmt.Errorf("%w: %v", ErrBadReply, got.Reply))
		return
	case figures != nil && figures[0] == 0, got.Outcome == NotApplied:
		return
	}
	c.pause(ctx, thinkTime)
	back := c.Persist("RL.RELEASE", leaseKey, holder)
	if figures == nil {
		return // the client held a slot perhaps, and at no time for certain
	}
	h := ledger.Span{Of: holder, FromNs: got.ReturnNs, TillNs: min(back.CallNs, expiryNs(got.CallNs)), Units: 1}
	w.Leases.add(h)
	if _, number := back.Reply.(int64); back.Outcome == Refused || back.Outcome == Answered && !number {
		w.Violations.Add(leaseKey, fmt.Errorf("%w: RELEASE answered %v", ErrBadReply, back.Reply))
	}
	if back.Outcome == Answered && back.Tries == 1 && back.Reply != int64(1) && back.ReturnNs < expiryNs(got.CallNs) {
		w.Violations.Add(leaseKey, fmt.Errorf("%w: %+v: RELEASE answered %v", ErrLeaseLost, h, back.Reply))
	}
}

// settleLeases acquires every slot after all faults have ended. Each slot is free as soon as the lease that a client
// may have left has expired.
func (w *Workload) settleLeases(c *Client) {
	for slot := range leaseSlots {
		var got Answer
		if poll(context.Background(), persistFor, func() bool {
			holder := c.freshID()
			got = c.Persist(acquireArgs(holder)...)
			figures := got.ints()
			return figures != nil && figures[0] == 1
		}) != nil {
			w.Violations.Add(leaseKey,
				fmt.Errorf("%w: %d of %d can be had: %v", ErrSlotLost, slot, leaseSlots, got.Reply))
			return
		}
		w.Leases.add(ledger.Span{Of: "at the end", FromNs: got.ReturnNs, TillNs: expiryNs(got.CallNs), Units: 1})
	}
}

func acquireArgs(holder string) []string {
	return []string{"RL.ACQUIRE", leaseKey, strconv.Itoa(leaseSlots), leaseTTL.String(), "HOLDER", holder, "ID", holder}
}

// expiryNs returns the time until which a lease requested at callNs is certainly valid, by a cluster clock that is Rho
// faster.
func expiryNs(callNs int64) int64 {
	return callNs + int64(float64(leaseTTL.Nanoseconds())/(1+Rho))
}
