package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// used is a number of units that were really used, and the time when they were held or taken.
type used struct{ atNs, units int64 }

type openHold struct {
	used
	id     string
	endsNs int64
}

// greedyHolder takes units, makes, cancels and commits holds at random, and lets holds expire.
type greedyHolder struct {
	*rand.Rand
	*holds
	open    []openHold
	history []used
}

func (g *greedyHolder) step(i int) {
	left, id := g.left("p", "k"), fmt.Sprint("id", i)
	switch n := g.IntN(6); {
	case n < 2 && left > 0:
		part, ttlNs := 1+g.Int64N(left), 1+g.Int64N(1<<(28+g.IntN(8)))
		require.EqualValues(g.t, 1, g.do(reserve(id, part, ttlNs, "p", "k")).Allowed)
		g.open = append(g.open, openHold{used{g.at.NowNs, part}, id, g.at.NowNs + ttlNs})
	case n < 3 && left > 0:
		require.EqualValues(g.t, 1, g.do(check(left, "p", "k")).Allowed)
		g.history = append(g.history, used{g.at.NowNs, left})
	case n < 5 && len(g.open) > 0:
		k := g.IntN(len(g.open))
		x := g.open[k]
		g.open = slices.Delete(g.open, k, k+1)
		if g.IntN(3) > 0 || g.at.NowNs >= x.endsNs { // a late commit takes units beyond the limit
			require.Equal(g.t, one(g.at.NowNs < x.endsNs), g.do(cancel(x.id)).Allowed)
			return
		}
		actual := g.Int64N(x.units + 1)
		g.do(commit(x.id, actual))
		g.history = append(g.history, used{x.atNs, actual})
	default:
		g.pass(g.Int64N(1 << (20 + g.IntN(16))))
	}
}

// TestHoldsGainNothing checks that holds never allow more use than the limit in any span of time. Used units count
// from the time when they were held.
func TestHoldsGainNothing(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for name, limit := range heldLimits {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				g := &greedyHolder{seeded(seed), newHolds(t, map[string]engine.Limit{"p": limit}), nil, nil}
				for i := range 600 {
					g.step(i)
				}
				requireWithin(t, limit, g.history)
			}
		})
	}
}

// requireWithin checks every span between two uses.
func requireWithin(t *testing.T, l engine.Limit, history []used) {
	for _, from := range history {
		for _, to := range history {
			spanNs := to.atNs - from.atNs
			if spanNs < 0 {
				continue
			}
			sum := int64(0)
			for _, x := range history {
				if from.atNs <= x.atNs && x.atNs <= to.atNs {
					sum += x.units
				}
			}
			require.LessOrEqual(t, sum, mostWithin(l, from.atNs, to.atNs), "from %d for %d ns", from.atNs, spanNs)
		}
	}
}

// mostWithin returns how many units a limit of heldLimits admits between two times, both included.
func mostWithin(l engine.Limit, fromNs, toNs int64) int64 {
	spanNs := toNs - fromNs
	switch l.Algorithm {
	case engine.TokenBucket:
		return l.Max + spanNs/l.Rate.PerNs
	case engine.LeakyBucket:
		return l.Max + 1 + spanNs/l.Rate.PerNs
	case engine.SlidingLog:
		return l.Max * (1 + spanNs/l.WindowNs)
	case engine.FixedWindow:
		return l.Max * (1 + toNs/l.WindowNs - fromNs/l.WindowNs)
	}
	return l.Max * (2 + spanNs/l.WindowNs) // the sliding counter is an estimate and promises no more
}

// TestAChecksTakeIsWhole checks 64 clients that check overlapping policies, and make, commit and cancel holds of them. In
// the end each limiter has exactly the used units, and nothing of denied checks and cancelled or expired holds.
func TestAChecksTakeIsWhole(t *testing.T) {
	const clients, policies, keys = 64, 5, 3
	each := 200 / min(raceFactor, 2)
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{})
	for p := range policies {
		decideAt(table, at, setPolicy(fmt.Sprint("p", p),
			engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(int64(600 * (p + 1))), quotaLimit(4000)}}))
	}
	var want [policies][keys]atomic.Int64
	var denied, ending atomic.Int64
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 6))
			for i := range each {
				op, chosen := someCheck(r, policies, keys)
				id := fmt.Sprint(c, ":", i)
				way := r.IntN(4)
				if way > 0 { // the others are plain checks
					op.Code, op.ID, op.TTLNs = engine.OpReserve, []byte(id), 1e9
				}
				if decideAt(table, at, op).Allowed == 0 {
					denied.Add(1)
					continue
				}
				actual := int64(0)
				switch way {
				case 0:
					actual = op.Cost
				case 1:
					actual = r.Int64N(5)
					decideAt(table, at, commit(id, actual))
				case 2:
					decideAt(table, at, cancel(id))
				default:
					ending.Add(1)
				}
				for _, x := range chosen {
					want[x[0]][x[1]].Add(actual)
				}
			}
		})
	}
	all.Wait()
	require.NotZero(t, denied.Load())
	require.NotZero(t, ending.Load())
	at.NowNs += 1e9
	for p := range policies {
		for k := range keys {
			for limit := range 2 {
				info, _ := table.Inspect(at, fmt.Appendf(nil, "policy|p%d|%d|k%d", p, limit, k))
				require.Equal(t, want[p][k].Load(), info.Used, "policy %d limit %d key %d", p, limit, k)
				require.Zero(t, info.Holders)
			}
		}
	}
}

// TestHoldsMadeAnewMeanwhile checks a race of OpCommit and OpCancel. Such an operation finds the keys of its hold
// before it locks them. In between, the hold may expire and be made again for other keys. In the end the table must
// have no entry except the limiters of the keys.
func TestHoldsMadeAnewMeanwhile(t *testing.T) {
	const clients, each, keys = 16, 2000, 40
	table := engine.NewTable(engine.Options{IDLifetimeNs: 1})
	start := engine.Stamp{NowNs: 1e18}
	decideAt(table, start, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(engine.MaxUnits)}}))
	var clock, committed atomic.Int64
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 7))
			for range each {
				at := engine.Stamp{NowNs: start.NowNs + clock.Add(1)}
				id := fmt.Sprint("id", r.IntN(2))
				if r.IntN(2) == 0 {
					decideAt(table, at, reserve(id, 5, 2, "p", fmt.Sprint("k", r.IntN(keys))))
				} else if d := decideAt(table, at, commit(id, 3+r.Int64N(4))); d.Allowed > 0 {
					committed.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.NotZero(t, committed.Load())
	at := engine.Stamp{NowNs: start.NowNs + 1e9}
	require.LessOrEqual(t, table.Len(at), int64(keys))
}
