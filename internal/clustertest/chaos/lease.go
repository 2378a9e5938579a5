package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// ErrLeaseLost: a slot was gone before its time was up, though its holder had not
// given it back.
var ErrLeaseLost = errors.New("a held lease was lost")

// ErrSlotLost: a slot was not free again when every lease was over.
var ErrSlotLost = errors.New("a slot is not free though no lease runs")

// leaseKey is the one key of the leases.
const leaseKey = "lease"

// Leases is the history of the leases. Safe for use by several goroutines.
type Leases struct {
	mu    sync.Mutex
	holds []Hold
}

func (l *Leases) add(h Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.holds, h)
}

// Holds is the history so far.
func (l *Leases) Holds() []Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Hold(nil), l.holds...)
}

// lease takes a slot, holds it for a moment and gives it back.
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
		return // it may have held a slot
	}
	h := Hold{Holder: holder, FromNs: got.ReturnNs, TillNs: min(back.CallNs, expiryNs(got.CallNs)), Units: 1}
	w.Leases.add(h)
	if _, number := back.Reply.(int64); back.Outcome == Refused || back.Outcome == Answered && !number {
		w.Violations.Add(leaseKey, fmt.Errorf("%w: RELEASE answered %v", ErrBadReply, back.Reply))
	}
	if back.Outcome == Answered && back.Tries == 1 && back.Reply != int64(1) && back.ReturnNs < expiryNs(got.CallNs) {
		w.Violations.Add(leaseKey, fmt.Errorf("%w: %+v: RELEASE answered %v", ErrLeaseLost, h, back.Reply))
	}
}

// settleLeases takes every slot, when all is quiet: each is free as soon as the lease that
// a client may have left behind is over.
func (w *Workload) settleLeases(c *Client) {
	for slot := range leaseSlots {
		var got Answer
		if poll(context.Background(), persistFor, func() bool {
			holder := c.freshID()
			got = c.Persist(acquireArgs(holder)...)
			figures := got.ints()
			return figures != nil && figures[0] == 1
		}) != nil {
			w.Violations.Add(leaseKey, fmt.Errorf("%w: %d of %d can be had: %v", ErrSlotLost, slot, leaseSlots, got.Reply))
			return
		}
		w.Leases.add(Hold{Holder: "at the end", FromNs: got.ReturnNs, TillNs: expiryNs(got.CallNs), Units: 1})
	}
}

func acquireArgs(holder string) []string {
	return []string{"RL.ACQUIRE", leaseKey, strconv.Itoa(leaseSlots), leaseTTL.String(), "HOLDER", holder, "ID", holder}
}

// expiryNs is until when a lease asked for at callNs certainly runs, by a cluster
// clock that is Rho faster.
func expiryNs(callNs int64) int64 {
	return callNs + int64(float64(leaseTTL.Nanoseconds())/(1+Rho))
}
