package chaos

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
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
	for _, t := range w.settled() {
		w.settle(c, t)
	}
	w.settleLeases(c)
	w.settleBooks(c)
}

func (w *Workload) settled() []*Trail {
	trails := append(w.Accounts.Trails(), w.Onces.Trails()...)
	return append(trails, w.Mixed.Trails()...)
}

func (w *Workload) settle(c *Client, t *Trail) {
	op := Op{Client: c.ID, Verb: Take}
	begin := c.nowNs()
	a := c.Persist(quota(t, op, "")...)
	for a.Outcome == NotApplied && time.Duration(c.nowNs()-begin) < persistFor {
		time.Sleep(backoff)
		a = c.Persist(quota(t, op, "")...)
	}
	if a.Outcome != Answered {
		w.Violations.Add(t.Key, fmt.Errorf("%w: no answer in a whole cluster: %v", ErrNoLeader, a.Outcome))
		return
	}
	w.record(t, op, a, false)
}

// Judge runs every check over the histories, and keeps the wrong histories.
func (w *Workload) Judge(keep func(name string, history fmt.Stringer)) {
	var jobs []func()
	judge := func(t *Trail, check func([]Op) error) {
		jobs = append(jobs, func() {
			if err := check(t.Ops()); err != nil {
				w.Violations.Add(t.Key, err)
				keep(t.Key, t)
			}
		})
	}
	for _, t := range w.Buckets {
		judge(t, func(ops []Op) error {
			return ledger.OverAdmittedBucket(bucketBurst, bucketPerSecond, Rho, grantsOf(ops))
		})
	}
	for _, t := range w.Slidings {
		judge(t, func(ops []Op) error {
			return errors.Join(ledger.OverAdmittedWindow(slidingMax, slidingWindow, Rho, grantsOf(ops)), Granting(ops))
		})
	}
	for _, t := range append(w.Accounts.Trails(), w.Onces.Trails()...) {
		judge(t, func(ops []Op) error { return accountedAtEnd(t.Max, ops) })
		judge(t, func(ops []Op) error { return w.staleness(t, ops) })
	}
	for _, t := range w.settled() {
		judge(t, func(ops []Op) error { return Linearizable(t.Max, ops) })
	}
	for _, ring := range w.Books.rings() {
		for _, t := range ring.Trails() {
			jobs = append(jobs, func() {
				if err := w.Books.judge(ring, t); err != nil {
					w.Violations.Add(t.Name, err)
					keep(t.Name, t)
				}
			})
		}
	}
	jobs = append(jobs, func() { w.Violations.Add(leaseKey, OverHeld(leaseSlots, w.Leases.Holds())) })
	inParallel(jobs)
}

// grantsOf returns what operations with an answer took.
func grantsOf(ops []Op) (grants []ledger.Grant) {
	for _, op := range ops {
		if units := op.grants(); units > 0 {
			grants = append(grants, ledger.Grant{CallNs: op.CallNs, ReturnNs: op.ReturnNs, Units: units})
		}
	}
	return grants
}

// staleness judges the stale reads of a limit that only grows, and counts them.
func (w *Workload) staleness(t *Trail, ops []Op) error {
	reads := t.StaleReads()
	understated, err := Staleness(ops, reads)
	w.Reads.count(func(n *ReadCounts) {
		n.Stale, n.Understated = n.Stale+len(reads), n.Understated+understated
		for _, r := range reads {
			if r.ageless() {
				n.Ageless++
			} else {
				n.OldestMs = max(n.OldestMs, r.StaleMs)
			}
		}
	})
	return err
}

// accountedAtEnd takes the remaining units from the last operation, which is Settle's.
func accountedAtEnd(maxUnits int64, ops []Op) error {
	if len(ops) == 0 || ops[len(ops)-1].Outcome != Answered {
		return nil // Settle has reported this already
	}
	return Accounted(maxUnits, ops[len(ops)-1].Left, ops)
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

// String formats the whole history of a key.
func (t *Trail) String() string {
	out := "key " + t.Key + ", max " + strconv.FormatInt(t.Max, 10) + "\n"
	for _, op := range t.Ops() {
		out += op.String() + "\n"
	}
	return out
}
