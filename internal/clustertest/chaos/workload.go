package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// These are the limits of the workload. Rates are low and clients many, so that the clients of a bucket always want
// more than it has. That holds also while some clients wait for a node that does not answer. A burst is far larger than
// the refill during an election, so a lost bucket is visible.
const (
	bucketKeys      = 3
	bucketPerSecond = 30
	bucketBurst     = 150
	bucketClients   = 3 // for each key

	slidingKeys    = 2
	slidingMax     = 60
	slidingWindow  = 2 * time.Second
	slidingClients = 2

	accountMax     = 1200
	accountClients = 4
	onceMax        = 1200
	onceClients    = 4
	mixedMax       = 50
	mixedClients   = 3

	leaseSlots   = 3
	leaseTTL     = 10 * time.Second
	leaseClients = 5
)

const (
	// quickTimeout is the timeout of an impatient caller. patientTimeout is longer than any fault, so that patient
	// callers see late grants.
	quickTimeout   = 500 * time.Millisecond
	patientTimeout = 15 * time.Second
	// thinkTime is the longest a client pauses between two operations.
	thinkTime = 12 * time.Millisecond
)

// Workload is the traffic of the clients of a run, and the histories of their answers.
type Workload struct {
	start time.Time
	addrs []string
	seed  uint64
	over  time.Duration // fleetingOver, if the run has holds
	quick time.Duration // timeout of impatient callers

	Tally      Tally
	Violations *Violations
	Buckets    []*ledger.Trail
	Slidings   []*ledger.Trail
	Accounts   ledger.Ring // takes without ID: unknown outcomes stay unknown
	Onces      ledger.Ring // takes with ID, repeated until an answer arrives
	Mixed      ledger.Ring // takes and refunds with ID, resets
	Leases     Leases
	Books      *ledger.Books
	Reads      Reads
	Spending   *Spending     // nil: none
	leads      func() string // address of the known leader; nil: unknown
	spread     bool          // nodes lack groups, and read them at others
}

// NewWorkload prepares the clients' work on the nodes with these addresses.
func NewWorkload(addrs []string, seed uint64, v *Violations) *Workload {
	w := &Workload{
		start: time.Now(), addrs: addrs, seed: seed, over: fleetingOver, quick: quickTimeout, Violations: v,
		Accounts: ledger.Ring{Traffic: ledger.Counters("account", accountMax)},
		Onces:    ledger.Ring{Traffic: ledger.Counters("once", onceMax)},
		Mixed:    ledger.Ring{Traffic: ledger.Counters("mixed", mixedMax)},
		Books:    ledger.NewBooks(fleetingTTL),
	}
	for i := range bucketKeys {
		w.Buckets = append(w.Buckets, &ledger.Trail{Name: "bucket:" + strconv.Itoa(i)})
	}
	for i := range slidingKeys {
		w.Slidings = append(w.Slidings, &ledger.Trail{Name: "sliding:" + strconv.Itoa(i)})
	}
	return w
}

// Run runs all clients until ctx is over. It returns when each has finished its last operation.
func (w *Workload) Run(ctx context.Context) {
	w.found(ctx)
	var all sync.WaitGroup
	id := 0
	spawn := func(clients int, work func(context.Context, *Client)) {
		for i := range clients {
			timeout := w.quick
			if i == 0 {
				timeout = patientTimeout
			}
			c := w.client(id, timeout)
			id++
			all.Go(func() {
				defer c.Close()
				for c.pause(ctx, thinkTime) {
					work(ctx, c)
				}
			})
		}
	}
	for _, t := range w.Buckets {
		spawn(bucketClients, func(_ context.Context, c *Client) { w.bucket(c, t) })
	}
	for _, t := range w.Slidings {
		spawn(slidingClients, func(_ context.Context, c *Client) { w.sliding(c, t) })
	}
	spawn(accountClients, func(_ context.Context, c *Client) { w.account(c) })
	spawn(onceClients, func(_ context.Context, c *Client) { w.once(c) })
	spawn(mixedClients, func(_ context.Context, c *Client) { w.mixed(c) })
	spawn(leaseClients, w.lease)
	for _, ring := range w.Books.Rings() {
		spawn(bookClients, func(_ context.Context, c *Client) { w.keepBooks(c, ring) })
	}
	if w.Spending != nil {
		spawn(w.Spending.clients, func(_ context.Context, c *Client) { w.spend(c) })
		for i := range eventReaders * len(w.Spending.logs) {
			c := w.client(id, w.quick)
			id++
			all.Go(func() {
				defer c.Close()
				w.follow(ctx, w.eventReader(c, i/eventReaders, i%eventReaders == 0))
			})
		}
	}
	w.spawnReaders(ctx, &all, id)
	all.Wait()
}

func (w *Workload) client(id int, timeout time.Duration) *Client {
	rng := rand.New(rand.NewPCG(w.seed, uint64(id)))
	return &Client{ID: id, addrs: w.addrs, start: w.start, timeout: timeout, rng: rng, tally: &w.Tally,
		at: id % len(w.addrs)}
}

// demandPerSecond returns the units that the buckets can admit per second.
func (w *Workload) demandPerSecond() float64 { return bucketKeys * bucketPerSecond }

func (w *Workload) bucket(c *Client, t *ledger.Trail) {
	a := c.Call("RL.TOKENBUCKET", t.Name, strconv.Itoa(bucketPerSecond), strconv.Itoa(bucketBurst))
	w.record(c, t, t.Op(ledger.Take, 1), a, true)
}

func (w *Workload) sliding(c *Client, t *ledger.Trail) {
	units := 1 + c.rng.Int64N(3)
	a := c.Call("RL.SLIDING", t.Name, slidingWindow.String(), strconv.Itoa(slidingMax), "COST",
		strconv.FormatInt(units, 10))
	w.record(c, t, t.Op(ledger.Take, units), a, false)
}

func (w *Workload) account(c *Client) {
	t := w.Accounts.Next()
	op := t.Op(ledger.Take, c.rng.Int64N(4))
	op.Partial = c.rng.IntN(4) == 0
	w.record(c, t, op, c.Call(quota(op, "")...), false)
}

func (w *Workload) once(c *Client) {
	t := w.Onces.Next()
	op := t.Op(ledger.Take, 1+c.rng.Int64N(3))
	id := c.freshID()
	first := c.Persist(quota(op, id)...)
	w.record(c, t, op, first, false)
	if c.rng.IntN(4) == 0 {
		w.repeat(c, t, first, quota(op, id))
	}
}

// repeat sends an operation again, possibly to another node. The answer must be the same, unless it was a denial.
func (w *Workload) repeat(c *Client, t *ledger.Trail, first Answer, args []string) {
	told := first.ints()
	if len(told) < 2 || told[0] == 0 {
		return
	}
	if c.rng.IntN(2) == 0 {
		c.Close()
		c.at = c.rng.IntN(len(c.addrs))
	}
	again := c.Call(args...)
	if again.Outcome == NotApplied || again.Outcome == Unknown {
		return
	}
	if got := again.ints(); len(got) < 2 || !slices.Equal(got[:2], told[:2]) {
		w.Violations.Add(t.Name, fmt.Errorf("%w: %v answered %v first and %v when repeated", ErrNotOnce, args,
			first.Reply, again.Reply))
	}
}

func (w *Workload) mixed(c *Client) {
	t := w.Mixed.Next()
	switch n := c.rng.IntN(20); {
	case n == 0:
		w.record(c, t, t.Op(ledger.Reset, 0), c.Call("RL.RESET", t.Name), false)
	case n < 6:
		op := t.Op(ledger.Refund, 1+c.rng.Int64N(3))
		w.record(c, t, op, c.Persist("RL.REFUND", t.Name, strconv.FormatInt(op.Units, 10), "ID", c.freshID()), false)
	default:
		op := t.Op(ledger.Take, 1+c.rng.Int64N(3))
		w.record(c, t, op, c.Persist(quota(op, c.freshID())...), false)
	}
}

// quota returns the command of a take from a limit that never refills.
func quota(op ledger.Op, id string) []string {
	args := []string{"RL.FIXED", op.Pairs[0].Key, "FOREVER", strconv.FormatInt(op.Max, 10), "COST",
		strconv.FormatInt(op.Units, 10)}
	if op.Partial {
		args = append(args, "PARTIAL")
	}
	if id != "" {
		args = append(args, "ID", id)
	}
	return args
}

func (c *Client) freshID() string { return strconv.FormatUint(c.rng.Uint64(), 36) }
