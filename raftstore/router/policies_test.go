package router

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// limitOf is a policy of one limit.
func limitOf(most int64) *engine.Policy {
	return &engine.Policy{Limits: []engine.PolicyLimit{{
		Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}}}}
}

func setPolicy(name string, most int64) engine.Op {
	return change(name, engine.PolicyChange{Do: engine.PolicySet, Terms: limitOf(most), Own: true})
}

// mostOf returns the maximum of a policy in each group, or 0 for a group without the policy.
func mostOf(groups []*fakeGroup, name string) (most []int64) {
	for _, g := range groups {
		p := g.Policies().Get([]byte(name))
		if p == nil {
			most = append(most, 0)
			continue
		}
		most = append(most, p.Limits[0].Limit.Max)
	}
	return most
}

// TestAPolicyIsInEveryGroup: a change reaches all groups, its condition is compared in the first group alone, and a
// refused change reaches none.
func TestAPolicyIsInEveryGroup(t *testing.T) {
	r, groups := newTest(t, 4)
	require.Equal(t, engine.OK, decide(t, r, setPolicy("p", 5))[0].Status)
	require.Equal(t, []int64{5, 5, 5, 5}, mostOf(groups, "p"))
	for g := range groups {
		key := keysOf(r, g, 1)[0]
		check := engine.Op{Code: engine.OpCheck, Cost: 1, Key: []byte(key), Text: []byte("p")}
		require.EqualValues(t, 4, decide(t, r, check)[0].Remaining)
	}
	groups[2].table.Decide(at, []engine.Op{setPolicy("p", 7)}, make([]engine.Decision, 1)) // a second version
	when := setPolicy("p", 6)
	when.Policy.If, when.Policy.Version = true, 1
	require.Equal(t, engine.OK, decide(t, r, when)[0].Status)
	require.Equal(t, []int64{6, 6, 6, 6}, mostOf(groups, "p"))
	require.Equal(t, engine.PolicyChanged, decide(t, r, when)[0].Status)
	require.Equal(t, []int64{6, 6, 6, 6}, mostOf(groups, "p"))
}

// TestAGroupThatRefusesAPolicy checks that a change is not reported as done if another group refuses it.
func TestAGroupThatRefusesAPolicy(t *testing.T) {
	r, groups := newTest(t, 2)
	withLayout := func(name string) engine.Op {
		op := setPolicy(name, 5)
		op.Policy.Terms.Layout = "rl:{key}"
		return op
	}
	groups[1].table.Decide(at, []engine.Op{withLayout("old")}, make([]engine.Decision, 1))
	require.Equal(t, engine.UnknownOutcome, decide(t, r, withLayout("new"))[0].Status)
	require.Equal(t, []int64{5, 0}, mostOf(groups, "new"))
}

// TestPoliciesOfOneTransaction checks that every group changes all policies of a transaction in one step, or none.
func TestPoliciesOfOneTransaction(t *testing.T) {
	r, groups := newTest(t, 2)
	ops := []engine.Op{setPolicy("a", 1), setPolicy("b", 2)}
	out := make([]engine.Decision, 2)
	require.NoError(t, r.DecideAtomic(ops, out))
	require.Equal(t, []int{1, 1}, []int{groups[0].atomic, groups[1].atomic})
	require.Equal(t, []int64{2, 2}, mostOf(groups, "b"))

	ops[0].Policy.If, ops[0].Policy.Version = true, 9
	ops[1] = setPolicy("b", 3)
	require.NoError(t, r.DecideAtomic(ops, out))
	require.Equal(t, []engine.Status{engine.PolicyChanged, engine.Abandoned},
		[]engine.Status{out[0].Status, out[1].Status})
	require.Equal(t, []int64{2, 2}, mostOf(groups, "b"))
	require.Equal(t, 1, groups[1].atomic, "the second group was not asked")
}

// TestPoliciesAreRepaired: a group that missed a change gets it from the node that leads the first group, once the
// difference has stayed for two comparisons.
func TestPoliciesAreRepaired(t *testing.T) {
	r, groups := newTest(t, 2)
	decide(t, r, setPolicy("stays", 1), setPolicy("goes", 2), setPolicy("changes", 3))
	override := override("stays", engine.PolicyOverride, engine.Override{
		Pattern: "vip:*", Limits: limitOf(99).Limits, UntilNs: engine.Never}, int64(time.Minute))
	decide(t, r, override)
	groups[1].fail(limiter.ErrClusterDown)
	require.Equal(t, engine.UnknownOutcome, decide(t, r, setPolicy("changes", 4))[0].Status)
	decide(t, r, setPolicy("new", 5), change("goes", engine.PolicyChange{Do: engine.PolicyDelete}),
		change("stays", engine.PolicyChange{Do: engine.PolicyDisable}))
	other := engine.Override{Pattern: "x", Limits: limitOf(1).Limits, UntilNs: engine.Never}
	groups[1].table.Decide(at, []engine.Op{overrideOf("stays", other)}, make([]engine.Decision, 1))
	suspects := make([]bool, 2)
	r.repairPolicies(suspects)
	require.Equal(t, []bool{false, false}, suspects, "this node does not lead the first group")

	groups[0].topology.Self, groups[0].topology.Leader = "a", "a"
	r.repairPolicies(suspects)
	require.Equal(t, []bool{false, true}, suspects)
	groups[1].fail(nil)
	require.Equal(t, []int64{4, 3}, mostOf(groups, "changes"))
	r.repairPolicies(suspects)
	require.Equal(t, []int64{4, 4}, mostOf(groups, "changes"))
	require.Equal(t, []int64{5, 5}, mostOf(groups, "new"))
	require.Equal(t, []int64{0, 0}, mostOf(groups, "goes"))
	p := groups[1].Policies().Get([]byte("stays"))
	require.True(t, p.Disabled)
	require.Len(t, p.Overrides, 1)
	require.Equal(t, "vip:*", p.Overrides[0].Pattern)
	require.Equal(t, at.NowNs+int64(time.Minute), p.Overrides[0].UntilNs)
	r.repairPolicies(suspects)
	require.Equal(t, []bool{false, false}, suspects)
}

func overrideOf(name string, o engine.Override) engine.Op {
	return override(name, engine.PolicyOverride, o, 0)
}

// TestARepairUndoesNoLaterChange checks that a repair changes no policy that a client has changed since the comparison.
func TestARepairUndoesNoLaterChange(t *testing.T) {
	r, groups := newTest(t, 2)
	decide(t, r, setPolicy("p", 3), setPolicy("q", 3))
	groups[1].table.Decide(at, []engine.Op{setPolicy("p", 7), setPolicy("q", 7), setPolicy("s", 7)},
		make([]engine.Decision, 3))
	have := groups[1].Policies()
	ops := difference(groups[0].Policies(), have, at.NowNs)
	require.Len(t, ops, 3)
	decide(t, r, setPolicy("p", 9), setPolicy("s", 9))
	require.NoError(t, repair(groups[1], have, ops))
	require.Equal(t, []int64{9, 9}, mostOf(groups, "p"))
	require.Equal(t, []int64{9, 9}, mostOf(groups, "s"))
	require.Equal(t, []int64{3, 3}, mostOf(groups, "q"))
}

// TestNothingIsRepairedWithoutAReadIndex: a deposed leader of the first group must not overwrite newer policies. A group
// that cannot answer a ReadIndex is not changed either, because its policies here may be old.
func TestNothingIsRepairedWithoutAReadIndex(t *testing.T) {
	r, groups := newTest(t, 2)
	groups[0].topology.Self, groups[0].topology.Leader = "a", "a"
	groups[1].table.Decide(at, []engine.Op{setPolicy("p", 7)}, make([]engine.Decision, 1))
	suspects := []bool{false, true}
	for _, g := range groups {
		g.fail(limiter.ErrTryAgain)
		r.repairPolicies(suspects)
		require.Equal(t, []int64{0, 7}, mostOf(groups, "p"))
		require.Zero(t, groups[1].atomic, "a change was tried")
		g.fail(nil)
	}
	r.repairPolicies(suspects)
	require.Equal(t, []int64{0, 0}, mostOf(groups, "p"))
}
