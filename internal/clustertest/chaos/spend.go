package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// The policies with thresholds. Each limit has 100 units.
const (
	spentPolicy   = "spent"   // counts forever, and gets nothing back
	creditPolicy  = "credits" // pays what does not fit spentPolicy
	renewedPolicy = "renewed" // has short windows
	heldPolicy    = "held"    // of holds, which give units back
)

// eventReaders read the log of each group, one by XREAD and one by RL.EVENTS.
const eventReaders = 2

const (
	spentMax = 100
	// spentWindow is so short that a run has many windows, and so long that its clients reach all thresholds.
	spentWindow = "2s"
	renewedKeys = 4
	// usesOfKey is how many operations there are on a key, so that its limit is nearly used up.
	usesOfKey = 9
	heldTTL   = "10m" // longer than any run asks for a hold again
)

// spentShares are the thresholds of each limit, in percent.
var spentShares = []int64{10, 20, 35, 50, 65, 80, 90, 100}

// spentTerms are the limits as package ledger judges them.
func spentTerms() map[string]ledger.Notify {
	forever := ledger.Notify{Max: spentMax, Shares: spentShares}
	renewed, held := forever, forever
	renewed.Ends, held.Returns = true, true
	return map[string]ledger.Notify{spentPolicy: forever, creditPolicy: forever, renewedPolicy: renewed,
		heldPolicy: held}
}

// Spending is the traffic of limits with thresholds: the operations that clients know to have taken units, or perhaps,
// and the logs of events that readers saw. It is safe for use by several goroutines.
type Spending struct {
	clients int
	logs    []ledger.EventLog // by group
	uses    atomic.Int64

	mu        sync.Mutex
	takings   []ledger.Taking
	settlings []ledger.Settling
	counts    SpendCounts
}

// SpendCounts are the numbers of a run.
type SpendCounts struct {
	ledger.Tally
	Takings  int // of units from a limit
	Repeated int // of these, by commands that were sent several times with one ID
	Unknown  int // of these
	Moves    int // of readers to another node
}

// NewSpending returns the traffic of so many clients on a cluster with some groups.
func NewSpending(clients, groups int) *Spending {
	return &Spending{clients: clients, logs: make([]ledger.EventLog, groups)}
}

// Counts returns the numbers so far.
func (s *Spending) Counts() SpendCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// took records that an operation took units from a limit, or perhaps.
func (s *Spending) took(a Answer, t ledger.Taking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts.Takings++; a.Tries > 1 {
		s.counts.Repeated++
	}
	if t.Unknown {
		s.counts.Unknown++
	}
	s.takings = append(s.takings, t)
}

// settled records the end of a hold, unless it was certainly not applied.
func (s *Spending) settled(end ledger.Settling, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end.Unknown = a.Outcome == Unknown; a.Outcome != NotApplied {
		s.settlings = append(s.settlings, end)
	}
}

// moved counts a reader that went on at another node.
func (s *Spending) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Moves++
}

// foundSpending creates the policies.
func (w *Workload) foundSpending(ctx context.Context, c *Client) {
	words := []string{"NOTIFY"}
	for _, share := range spentShares {
		words = append(words, fmt.Sprint(share, "%"))
	}
	for policy, window := range map[string]string{
		spentPolicy: "FOREVER", creditPolicy: "FOREVER", renewedPolicy: spentWindow, heldPolicy: "FOREVER",
	} {
		args := append([]string{"RL.POLICY", "SET", policy, "LIMIT", "FIXED", window, strconv.Itoa(spentMax)}, words...)
		if policy == heldPolicy {
			args = append(args, "RECORD")
		}
		if poll(ctx, persistFor, func() bool { a := c.Call(args...); return a.Outcome == Answered }) != nil {
			w.Violations.Add(policy, fmt.Errorf("%w: %v", errUnsettled, args))
		}
	}
}

// spend takes units in one of the ways in which a client may cross a threshold.
func (w *Workload) spend(c *Client) {
	use := w.Spending.uses.Add(1)
	key := fmt.Sprintf("{e%d}", use/usesOfKey)
	switch n := c.rng.IntN(8); {
	case n < 2:
		w.spendHold(c, key)
	case n < 3:
		w.spendUnits(c, ledger.Pair{Policy: renewedPolicy, Key: fmt.Sprintf("{r%d}", use%renewedKeys)})
	case n < 5:
		w.spendUnits(c, ledger.Pair{Policy: spentPolicy, Key: key})
	default:
		w.spendUnits(c, ledger.Pair{Policy: spentPolicy, Key: key}, ledger.Pair{Policy: creditPolicy, Key: key})
	}
}

// askToSpend runs a command that takes up to units from one of some pairs, or from several. The outcome NotApplied
// includes a denial. askToSpend records an operation with an unknown outcome: a denial after an attempt with an
// unknown outcome may precede that attempt.
func (w *Workload) askToSpend(c *Client, pairs []ledger.Pair, id string, units int64, args ...string) (a Answer,
	figures []int64) {
	a = c.Persist(args...)
	figures = a.ints()
	switch {
	case a.Outcome == Refused, a.Outcome == Answered && len(figures) < 5:
		w.Violations.Add(pairs[0].Policy, fmt.Errorf("%w: %v to %v", ErrBadReply, a.Reply, args))
		a.Outcome = Refused
	case a.Outcome == Answered && figures[0] == 0 && a.Tries == 1:
		a.Outcome = NotApplied
	case a.Outcome == Unknown, a.Outcome == Answered && figures[0] == 0:
		a.Outcome = Unknown
		for _, pair := range pairs {
			w.Spending.took(a, ledger.Taking{Pair: pair, ID: id, Units: units, Unknown: true})
		}
	}
	return a, figures
}

// spendUnits checks a policy, or two of which the second pays what does not fit the first.
func (w *Workload) spendUnits(c *Client, pairs ...ledger.Pair) {
	id, units := c.freshID(), 5+c.rng.Int64N(36)
	args := pairArgs([]string{"RL.CHECK"}, pairs[:1])
	if len(pairs) > 1 {
		args = append(pairArgs(append(args, "ELSE"), pairs[1:]), "SPLIT")
	}
	args = append(args, "COST", strconv.FormatInt(units, 10), "ID", id)
	a, figures := w.askToSpend(c, pairs, id, units, args...)
	if a.Outcome != Answered {
		return
	}
	if c.rng.IntN(4) == 0 {
		a.Tries++
		w.repeat(c, &ledger.Trail{Name: pairs[0].Policy}, a, args)
	}
	paid := []int64{units}
	if reply := a.Reply.([]any); len(pairs) > 1 {
		shares := Answer{Reply: reply[len(reply)-1]}
		paid = shares.ints()
	}
	used := spentMax - figures[1] // of the last one that pays
	for i, pair := range slices.Backward(pairs) {
		if i < len(paid) && paid[i] > 0 {
			w.Spending.took(a, ledger.Taking{Pair: pair, ID: id, Units: paid[i], Used: used})
			used = spentMax // the second pays only if the first has nothing left
		}
	}
}

// spendHold holds units, perhaps extends the hold and reports a part as used, and settles it. After an unknown outcome
// it leaves the hold.
func (w *Workload) spendHold(c *Client, key string) {
	pairs, id := []ledger.Pair{{Policy: heldPolicy, Key: key}}, key+c.freshID()
	take := func(units int64, args ...string) bool {
		a, figures := w.askToSpend(c, pairs, id, units, args...)
		if a.Outcome == Answered {
			w.Spending.took(a, ledger.Taking{Pair: pairs[0], ID: id, Units: units, Used: spentMax - figures[1]})
		}
		return a.Outcome == Answered
	}
	units, kept := 5+c.rng.Int64N(36), int64(0)
	if !take(units, "RL.RESERVE", heldPolicy, key, strconv.FormatInt(units, 10), heldTTL, "ID", id) {
		return
	}
	if more := 1 + c.rng.Int64N(20); c.rng.IntN(2) == 0 {
		if !take(more, "RL.EXTEND", id, strconv.FormatInt(more, 10), "SEQ", "1") {
			return
		}
		units += more
	}
	if c.rng.IntN(3) == 0 {
		kept = c.rng.Int64N(units)
		if a := w.settleSpent(c, "RL.COMMIT", id, strconv.FormatInt(kept, 10), "KEEP"); a.Outcome != Answered {
			return
		}
	}
	end := ledger.Settling{Pair: pairs[0], ID: id, Cost: kept}
	if c.rng.IntN(3) == 0 {
		w.Spending.settled(end, w.settleSpent(c, "RL.CANCEL", id))
		return
	}
	end.Cost = kept + c.rng.Int64N(units-kept+10)
	a := w.settleSpent(c, "RL.COMMIT", id, strconv.FormatInt(end.Cost, 10))
	if left, _ := a.Reply.(int64); end.Cost > units && a.Outcome != NotApplied {
		w.Spending.took(a, ledger.Taking{Pair: pairs[0], ID: id, Units: end.Cost - units, Used: spentMax - left,
			Unknown: a.Outcome == Unknown || left == 0}) // what is used beyond the limit is not known
	}
	w.Spending.settled(end, a)
}

// settleSpent runs a command whose reply is an integer.
func (w *Workload) settleSpent(c *Client, args ...string) Answer {
	a := c.Persist(args...)
	if _, ok := a.Reply.(int64); a.Outcome == Refused || a.Outcome == Answered && !ok {
		w.Violations.Add(heldPolicy, fmt.Errorf("%w: %v to %v", ErrBadReply, a.Reply, args))
		a.Outcome = NotApplied
	}
	return a
}
