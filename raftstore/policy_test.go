package raftstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

func setPolicy(name string, maxima ...int64) engine.Op {
	p := &engine.Policy{}
	for _, most := range maxima {
		p.Limits = append(p.Limits,
			engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}})
	}
	return engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &engine.PolicyChange{Terms: p}}
}

func check(cost int64, pairs ...string) engine.Op {
	op := engine.Op{Code: engine.OpCheck, Text: []byte(pairs[0]), Key: []byte(pairs[1]), Cost: cost}
	for i := 2; i < len(pairs); i += 2 {
		op.Also = append(op.Also, engine.Pair{Policy: []byte(pairs[i]), Key: []byte(pairs[i+1])})
	}
	return op
}

// TestPoliciesAreReplicated checks that a policy that was set through a follower applies on every node. A snapshot
// and the log after it restore it with its usage.
func TestPoliciesAreReplicated(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	follower := (at + 1) % 3
	c.decideOn(c.nodes[follower], setPolicy("org", 10), setPolicy("user", 5, 100))
	require.Equal(t, engine.Decision{Pair: 1, Allowed: 1, Remaining: 1, ResetMs: -1, Limit: 5},
		c.decideOn(c.nodes[follower], check(4, "org", "acme", "user", "7"))[0])
	require.NoError(t, leader.Snapshot())
	require.NoError(t, c.nodes[follower].Snapshot())
	c.decideOn(leader, check(1, "org", "acme"), engine.Op{
		Code: engine.OpPolicy, Key: []byte("user"), TTLNs: int64(time.Hour),
		Policy: &engine.PolicyChange{Do: engine.PolicyOverride,
			Terms: &engine.Policy{Overrides: []engine.Override{{Pattern: "vip:*", UntilNs: engine.Never}}}},
	})
	c.agree()
	c.stop(follower)
	c.restart(follower)
	c.agree()
	// A change whose answer is lost in an election is sent again, and then the version grows twice.
	version := c.nodes[follower].Policies().Get([]byte("user")).Version
	require.GreaterOrEqual(t, version, uint64(2))
	require.Equal(t, c.nodes[at].Policies().Get([]byte("user")).Version, version)
	out := c.decideOn(c.nodes[follower], check(5, "org", "acme", "user", "vip:1"),
		check(1, "org", "acme", "user", "vip:1"), check(1, "none", "k"))
	require.EqualValues(t, 1, out[0].Allowed, "the override must lift every limit except the organisation's")
	require.Equal(t, engine.Decision{RetryMs: -1, ResetMs: -1, Limit: 10}, out[1])
	require.Equal(t, engine.UnknownPolicy, out[2].Status)
	require.Eventually(t, func() bool { return c.nodes[follower].Clear() == nil }, patience, 10*time.Millisecond)
	require.EqualValues(t, 9, c.decideOn(c.nodes[follower], check(1, "org", "acme"))[0].Remaining,
		"a flush of limiters must keep the policies")
	c.agree()
}

// TestDenialsOfChecksNeedNoLog checks that denials of checks need no log entries, like denials of plain decisions.
func TestDenialsOfChecksNeedNoLog(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, _ := c.leader()
	c.decideOn(leader, setPolicy("org", 1), setPolicy("user", 100))
	denied := check(1, "user", "7", "org", "acme")
	c.decideOn(leader, denied, denied)
	before := leader.Topology().CommitIndex
	for range 50 {
		for _, d := range c.decideOn(leader, denied, denied) {
			require.Equal(t, engine.Decision{Pair: 1, RetryMs: -1, ResetMs: -1, Limit: 1}, d)
		}
	}
	require.Less(t, leader.Topology().CommitIndex, before+20,
		"100 denials must add no entries, apart from a few ticks")
	out := c.decideOn(leader, setPolicy("org", 2), denied, denied)
	require.EqualValues(t, 1, out[1].Allowed, "the policy change earlier in the pipeline must apply first")
	require.Zero(t, out[2].Allowed)
	c.agree()
}

// checkCall is one check of a history. A check with an unknown outcome may have taken units.
type checkCall struct {
	op      engine.Op
	got     engine.Decision
	unknown bool
}

// TestChecksAreLinearizable checks overlapping policies through every node while the leader changes. Some order of
// the checks, each at an instant between its call and its answer, must explain every answer.
func TestChecksAreLinearizable(t *testing.T) {
	const clients, each = 6, 60
	c := newCluster(t, 3, nil)
	leader, _ := c.leader()
	c.decideOn(leader, setPolicy("org", 150), setPolicy("team", 60), setPolicy("user", 40))
	start := time.Now()
	history := make([][]porcupine.Operation, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			for range each {
				op, out := randomCheck(r), make([]engine.Decision, 1)
				var called time.Duration
				var err error
				assert.Eventually(t, func() bool { // after an error other than ErrUnknownOutcome, nothing was applied
					called = time.Since(start)
					err = c.nodes[i%3].Decide([]engine.Op{op}, out)
					return err == nil || errors.Is(err, limiter.ErrUnknownOutcome)
				}, 10*time.Second, time.Millisecond)
				returned := int64(time.Since(start))
				if err != nil {
					returned = 1 << 62
				}
				history[i] = append(history[i], porcupine.Operation{
					ClientId: i, Input: op, Output: checkCall{op, out[0], err != nil}, Call: int64(called),
					Return: returned,
				})
			}
		})
	}
	for i := range 3 {
		c.moveTo(i)
	}
	all.Wait()
	var whole []porcupine.Operation
	admitted, denied := 0, 0
	for _, part := range history {
		for _, o := range part {
			if call := o.Output.(checkCall); call.got.Allowed > 0 {
				admitted++
			} else {
				denied++
			}
		}
		whole = append(whole, part...)
	}
	require.NotZero(t, admitted)
	require.NotZero(t, denied)
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(
		quotas(map[string]int64{"org": 150, "team": 60, "user": 40}), whole, time.Minute))
	c.agree()
}

// randomCheck returns a check of an organisation, usually with one of two teams or one of three users.
func randomCheck(r *rand.Rand) engine.Op {
	pairs := []string{"org", "acme"}
	if r.IntN(4) > 0 {
		pairs = append(pairs, "team", fmt.Sprint(r.IntN(2)))
	}
	if r.IntN(3) > 0 {
		pairs = append(pairs, "user", fmt.Sprint(r.IntN(3)))
	}
	return check(1+r.Int64N(3), pairs...)
}

// quotas is the sequential model: a check takes its cost from every quota that it names, or from none. The state is
// the used units by policy and key.
func quotas(maxima map[string]int64) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init:  func() []any { return []any{map[string]int64{}} },
		Equal: func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) },
		Step: func(state, _, output any) []any {
			used, call := state.(map[string]int64), output.(checkCall)
			next, fits, least := map[string]int64{}, true, int64(1<<62)
			for k, v := range used {
				next[k] = v
			}
			for i := range len(call.op.Also) + 1 {
				p := call.op.PairAt(i)
				name := string(p.Policy) + " " + string(p.Key)
				next[name] += call.op.Cost
				left := maxima[string(p.Policy)] - next[name]
				fits, least = fits && left >= 0, min(least, left)
			}
			switch {
			case call.unknown && fits:
				return []any{used, next}
			case call.unknown:
				return []any{used}
			case call.got.Allowed == 1 && fits && call.got.Remaining == least:
				return []any{next}
			case call.got.Allowed == 0 && !fits:
				return []any{used}
			}
			return nil
		},
	}
	return model.ToModel()
}

// zonedPolicies returns changes of policies that each contain eight time zones with the longest possible data.
func zonedPolicies(n int) []engine.Op {
	var limits []engine.PolicyLimit
	for i := range 8 {
		zone := &engine.Zone{Name: fmt.Sprint("zone", i)}
		for c := range int64(engine.MaxZoneChanges) {
			zone.Changes = append(zone.Changes, engine.ZoneChange{AtSec: 1e9 + 15e6*c, OffsetSec: 3600 * (c % 2)})
		}
		limits = append(limits, engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Day,
			Max: 5}, Zone: zone})
	}
	var ops []engine.Op
	for i := range n {
		ops = append(ops, engine.Op{Code: engine.OpPolicy, Key: fmt.Append(nil, "zoned", i),
			Policy: &engine.PolicyChange{Terms: &engine.Policy{Limits: limits}}})
	}
	return ops
}

// TestLongTransactions checks that a leader and a follower have the same bound of a transaction. A longer transaction
// is refused and has no effect.
func TestLongTransactions(t *testing.T) {
	const long = 5 * patience // a busy machine needs many seconds for megabytes
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.MaxDecisionAge = long })
	_, at := c.leader()
	fits, tooLong := zonedPolicies(400), append(zonedPolicies(1023), setPolicy("last", 1))
	out := make([]engine.Decision, len(tooLong))
	for _, node := range []*raftstore.Node{c.nodes[at], c.nodes[(at+1)%3]} {
		require.Eventually(t, func() bool { return node.DecideAtomic(fits, out) == nil }, long, time.Millisecond)
		require.Eventually(t, func() bool {
			return errors.Is(node.DecideAtomic(tooLong, out), limiter.ErrTooLarge)
		}, long, time.Millisecond, "without a leader, the node answers another error")
	}
	c.agree()
	require.Nil(t, c.nodes[at].Policies().Get([]byte("last")))
	require.NotNil(t, c.nodes[at].Policies().Get([]byte("zoned399")))
}
