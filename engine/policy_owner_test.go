package engine_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// owned returns a change that makes a policy with an owner, or "" for none.
func owned(name, owner string, most int64) engine.Op {
	op := setPolicy(name, engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(most)}, Owner: owner})
	op.Policy.Own = true
	return op
}

// onlyIf makes a change conditional on a version.
func onlyIf(op engine.Op, version uint64) engine.Op {
	change := *op.Policy
	change.If, change.Version = true, version
	op.Policy = &change
	return op
}

// TestAPolicyKeepsItsOwner checks that a policy keeps its owner until a change names another.
func TestAPolicyKeepsItsOwner(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	owner := func() string { return table.Policies().Get([]byte("p")).Owner }
	decideAt(table, at, owned("p", "team-a", 5))
	require.Equal(t, "team-a", owner())
	require.EqualValues(
		t, 2, decideAt(table, at, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(6)}})).Remaining)
	require.Equal(t, "team-a", owner(), "a change without an owner must keep it")
	require.EqualValues(t, 3, decideAt(table, at, owned("p", "team-b", 6)).Remaining,
		"another owner must count as a change")
	require.Equal(t, "team-b", owner())
	decideAt(table, at, owned("p", "", 6))
	require.Empty(t, owner())
}

// TestTheStoredFormOfAnOwner checks that a policy without an owner is stored as in older versions. Those refuse a
// policy with an owner by its first byte.
func TestTheStoredFormOfAnOwner(t *testing.T) {
	p := engine.Policy{Version: 7, Limits: []engine.PolicyLimit{quotaLimit(5)}, Shadow: true, Reserved: 200}
	const older = "010e02009003000203060000" + "0a0000000000"
	require.Equal(t, older, hex.EncodeToString(p.Append(nil)))
	p.Owner = "team-a"
	stored := p.Append(nil)
	require.Equal(t, "02"+"0c7465616d2d61"+older[2:], hex.EncodeToString(stored))
	back, err := engine.DecodePolicy("p", stored)
	require.NoError(t, err)
	require.Equal(t, "team-a", back.Owner)
	require.EqualValues(t, 7, back.Version)
	for _, bad := range []string{"03" + older[2:], "02" + "0c7465616d2061" + older[2:], "02" + "00" + older[2:], "02"} {
		bytes, err := hex.DecodeString(bad)
		require.NoError(t, err)
		_, err = engine.DecodePolicy("p", bytes)
		require.ErrorIs(t, err, engine.ErrStored, bad)
	}
	require.ErrorIs(t, (&engine.Policy{Name: "p", Owner: "team a", Limits: p.Limits}).Validate(), engine.ErrPolicy)
}

// TestAConditionalBatchIsWhole checks that a refused policy change refuses the whole batch, including takes.
// Otherwise the whole batch is applied.
func TestAConditionalBatchIsWhole(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	take := engine.Op{Key: []byte("k"), Limit: quotaLimit(9).Limit, Cost: 1}
	gone := engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Do: engine.PolicyDelete}}
	none := engine.Op{Code: engine.OpPolicy, Key: []byte("none"), Policy: &engine.PolicyChange{Do: engine.PolicyEnable}}
	for name, c := range map[string]struct {
		ops  []engine.Op
		want []engine.Status
	}{
		"as expected": {[]engine.Op{take, onlyIf(owned("p", "", 6), 1), onlyIf(owned("q", "", 6), 0)},
			[]engine.Status{0, 0, 0}},
		"another version": {[]engine.Op{take, owned("q", "", 1), onlyIf(owned("p", "", 6), 2)},
			[]engine.Status{engine.Abandoned, engine.Abandoned, engine.PolicyChanged}},
		"it is there": {[]engine.Op{onlyIf(owned("p", "", 6), 0), take},
			[]engine.Status{engine.PolicyChanged, engine.Abandoned}},
		"it is not there": {[]engine.Op{onlyIf(owned("q", "", 6), 1), take},
			[]engine.Status{engine.PolicyChanged, engine.Abandoned}},
		"removed": {[]engine.Op{onlyIf(gone, 1), owned("q", "", 1)}, []engine.Status{0, 0}},
		"removed, if it were": {[]engine.Op{onlyIf(gone, 3), owned("q", "", 1)},
			[]engine.Status{engine.PolicyChanged, engine.Abandoned}},
		"another one is refused": {[]engine.Op{onlyIf(gone, 1), none},
			[]engine.Status{engine.Abandoned, engine.UnknownPolicy}},
		"without a condition": {[]engine.Op{take, owned("q", "", 1), none},
			[]engine.Status{0, 0, engine.UnknownPolicy}},
		"one after the other": {[]engine.Op{onlyIf(gone, 1), onlyIf(owned("p", "", 2), 0),
			onlyIf(owned("p", "", 3), 1)}, []engine.Status{0, 0, 0}},
	} {
		table := engine.NewTable(engine.Options{})
		decideAt(table, at, owned("p", "", 5))
		require.EqualValues(t, 4, decideAt(table, at, check(1, "p", "k")).Remaining)
		before := table.StateHash(at)
		out := make([]engine.Decision, len(c.ops))
		table.DecideAtomic(at, c.ops, out)
		var got []engine.Status
		refused := false
		for i := range out {
			got = append(got, out[i].Status)
			refused = refused || out[i].Status == engine.Abandoned || out[i].Status == engine.PolicyChanged
		}
		require.Equal(t, c.want, got, name)
		require.Equal(t, refused, table.StateHash(at) == before, name)
	}
}

// TestAConditionalBatchHasRoomForAll checks that a batch with a policy beyond the bounds is refused as a whole,
// including the policies before it.
func TestAConditionalBatchHasRoomForAll(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	ops := []engine.Op{onlyIf(owned("a", "", 1), 0), owned("b", "", 1)}
	for range engine.MaxGlobs + 1 {
		op := setPolicy("b",
			engine.Policy{Overrides: []engine.Override{{Pattern: "*" + string(rune('a'+len(ops))),
				UntilNs: engine.Never}}})
		op.Policy.Do = engine.PolicyOverride
		ops = append(ops, op)
	}
	out := make([]engine.Decision, len(ops))
	table.DecideAtomic(at, ops, out)
	require.Equal(t, engine.PoliciesFull, out[len(out)-1].Status)
	require.Zero(t, table.Policies().Len())
	table.DecideAtomic(at, ops[:len(ops)-1], out)
	require.Equal(t, 2, table.Policies().Len())
}
