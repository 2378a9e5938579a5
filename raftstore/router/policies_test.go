package router

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
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
	when := setPolicy("p", 6)
	when.Policy.If, when.Policy.Version = true, 1
	require.Equal(t, engine.OK, decide(t, r, when)[0].Status)
	require.Equal(t, []int64{6, 6, 6, 6}, mostOf(groups, "p"))
	require.Equal(t, engine.PolicyChanged, decide(t, r, when)[0].Status)
	require.Equal(t, []int64{6, 6, 6, 6}, mostOf(groups, "p"))
}

// TestALayoutThatAnotherGroupHasTaken checks that a policy of one group alone does not keep the group from the policies
// of the first group.
func TestALayoutThatAnotherGroupHasTaken(t *testing.T) {
	r, groups := newTest(t, 2)
	withLayout := func(name string) engine.Op {
		op := setPolicy(name, 5)
		op.Policy.Terms.Layout = "rl:{key}"
		return op
	}
	groups[1].table.Decide(at, []engine.Op{withLayout("old")}, make([]engine.Decision, 1))
	require.Equal(t, engine.OK, decide(t, r, withLayout("new"))[0].Status)
	require.Equal(t, []int64{5, 5}, mostOf(groups, "new"))
	require.Equal(t, []int64{0, 0}, mostOf(groups, "old"), "the first group never had it")
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
