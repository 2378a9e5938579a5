package chaos

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// Rho is how much faster than the clients' clock the cluster's clock may run. Both use oscillators of one machine, and
// NTP may slew one of them at up to 500 ppm.
const Rho = 0.001

// settlingClient is the id of the client that asks at the end.
const settlingClient = 9999

// Settle asks for the remaining units of every limit that never refills, after all faults have ended, and adds the
// answer to its history. A missing answer within persistFor is a violation, because the cluster is healthy again.
func (w *Workload) Settle() {
	c := w.client(settlingClient, patientTimeout)
	defer c.Close()
	for _, t := range w.counters() {
		w.settle(c, t)
	}
	w.settleLeases(c)
	w.settleBooks(c)
	if w.Spending != nil {
		w.settleSpending(c)
	}
}

// counters returns the histories of the limits that never refill.
func (w *Workload) counters() []*ledger.Trail {
	return slices.Concat(w.Accounts.Trails(), w.Onces.Trails(), w.Mixed.Trails())
}

func (w *Workload) settle(c *Client, t *ledger.Trail) {
	op := t.Op(ledger.Take, 0)
	begin := c.nowNs()
	a := c.Persist(quota(op, "")...)
	for a.Outcome == NotApplied && time.Duration(c.nowNs()-begin) < persistFor {
		time.Sleep(backoff)
		a = c.Persist(quota(op, "")...)
	}
	if a.Outcome != Answered {
		w.Violations.Add(t.Name, fmt.Errorf("%w: no answer in a whole cluster: %v", ErrNoLeader, a.Outcome))
		return
	}
	w.record(c, t, op, a, false)
}

// Judge runs every check over the histories, and keeps the wrong histories.
func (w *Workload) Judge(keep func(name string, history fmt.Stringer)) {
	var jobs []func()
	judge := func(t *ledger.Trail, check func([]ledger.Op) error) {
		jobs = append(jobs, func() {
			if err := check(t.Ops()); err != nil {
				w.Violations.Add(t.Name, err)
				keep(t.Name, t)
			}
		})
	}
	for _, t := range w.Buckets {
		judge(t, func(ops []ledger.Op) error {
			return ledger.OverAdmittedBucket(bucketBurst, bucketPerSecond, Rho, ledger.Grants(ops))
		})
	}
	for _, t := range w.Slidings {
		judge(t, func(ops []ledger.Op) error {
			return errors.Join(Granting(ops),
				ledger.OverAdmittedWindow(slidingMax, slidingWindow, Rho, ledger.Grants(ops)))
		})
	}
	for _, t := range w.counters() {
		judge(t, ledger.Linearizable)
		judge(t, func(ops []ledger.Op) error { return w.staleness(t, ops) })
	}
	for _, ring := range w.Books.Rings() {
		for _, t := range ring.Trails() {
			judge(t, func([]ledger.Op) error { return w.Books.Judge(ring, t, Rho) })
		}
	}
	jobs = append(jobs, func() { w.Violations.Add(leaseKey, ledger.OverHeld(leaseSlots, w.Leases.Spans())) })
	if w.Spending != nil {
		jobs = append(jobs, w.judgeSpending)
	}
	inParallel(jobs)
}

// staleness judges the stale reads of a limit that only grows, and counts them.
func (w *Workload) staleness(t *ledger.Trail, ops []ledger.Op) error {
	reads := t.StaleReads()
	understated, err := ledger.Staleness(ops, reads)
	w.Reads.count(func(n *ReadCounts) {
		n.Stale, n.Understated = n.Stale+len(reads), n.Understated+understated
		for _, r := range reads {
			if r.Age >= unknownAge {
				n.Ageless++
			} else {
				n.Oldest = max(n.Oldest, r.Age)
			}
		}
	})
	return err
}

// inParallel runs jobs on as many goroutines as there are processors.
func inParallel(jobs []func()) {
	next := make(chan func())
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for job := range next {
				job()
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	all.Wait()
}
