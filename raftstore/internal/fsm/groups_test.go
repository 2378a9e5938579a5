package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/wire"
)

// keyOf returns the operation of bucket on another key.
func keyOf(key string) engine.Op {
	op := bucket
	op.Key = []byte(key)
	return op
}

// theGroup founds group 1 of 2, which owns the slots from 8192 on: "key" and "foo" are its keys, and "bar" is not.
func theGroup(t *testing.T) *testMachine {
	m := newTestMachine(t)
	f := ConstantsOf(1, 2)
	f.ClusterID, f.IDLifetimeNs = "c", 7
	require.Nil(t, m.foundAs(f))
	require.Empty(t, m.fatal)
	require.Equal(t, hashslot.Range{First: 8192, Last: 16383}, m.State.Founding.Owned())
	for key, slot := range map[string]uint16{"key": 12539, "foo": 12182, "bar": 5061} {
		require.Equal(t, slot, hashslot.Of([]byte(key)))
	}
	return m
}

// TestOperationsOnOtherSlotsAreRefused: the group carries out the operations before and after an operation on a slot of
// another group, and answers WrongGroup to that operation alone. Nothing is taken from its key.
func TestOperationsOnOtherSlotsAreRefused(t *testing.T) {
	m := theGroup(t)
	_, out := m.entry(wire.Header{Term: 1, At: at(0)}, keyOf("bar"), keyOf("key"), keyOf("bar"), keyOf("bar"),
		keyOf("key"), keyOf("key"), keyOf("bar"))
	var statuses []engine.Status
	var left []int64
	for i := range out {
		statuses, left = append(statuses, out[i].Status), append(left, out[i].Remaining)
	}
	w := limiter.ErrWrongGroup.Status()
	require.Equal(t, []engine.Status{w, 0, w, w, 0, 0, w}, statuses)
	require.Equal(t, []int64{0, 1, 0, 0, 0, 0, 0}, left, "two units of one key, and none of the other")
	require.EqualValues(t, 1, m.Table.Load().Len(at(0)))
	require.EqualValues(t, 0, out[5].Allowed)
}

// TestABatchOnOtherSlotsIsRefusedWhole checks that a transaction with one key of another group changes nothing.
func TestABatchOnOtherSlotsIsRefusedWhole(t *testing.T) {
	m := theGroup(t)
	out := make([]engine.Decision, 2)
	call := wire.Call{Ops: []engine.Op{keyOf("key"), keyOf("bar")}, Atomic: true}
	m.decideWithin(m.Table.Load(), &m.State, call, out)
	wrong := engine.Decision{Status: limiter.ErrWrongGroup.Status()}
	require.Equal(t, []engine.Decision{wrong, wrong}, out)
	require.Zero(t, m.Table.Load().Len(at(0)))
	call.Ops[1] = keyOf("foo")
	m.decideWithin(m.Table.Load(), &m.State, call, out)
	require.EqualValues(t, []int64{1, 1}, []int64{out[0].Allowed, out[1].Allowed})
}

// TestEverySlotOfAnOperationCounts checks that the group must own all keys of a check, and the key and the id of a
// hold. Policies and blocks everywhere belong to every group.
func TestEverySlotOfAnOperationCounts(t *testing.T) {
	slots := ConstantsOf(1, 2).Owned()
	check := engine.Op{Code: engine.OpCheck, Key: []byte("key"), Text: []byte("p")}
	require.True(t, check.Within(slots))
	check.Also = []engine.Pair{{Policy: []byte("p"), Key: []byte("foo")}, {Policy: []byte("p"), Key: []byte("bar")}}
	require.False(t, check.Within(slots))
	check.Also = check.Also[:1]
	require.True(t, check.Within(slots))

	reserve := engine.Op{Code: engine.OpReserve, Key: []byte("key"), Text: []byte("p"), ID: []byte("bar")}
	require.False(t, reserve.Within(slots))
	reserve.ID = []byte("{key}:1")
	require.True(t, reserve.Within(slots))

	for code := range engine.NumOps {
		op := engine.Op{Code: code, Key: []byte("bar")}
		everywhere := code == engine.OpPolicy || code == engine.OpBlockEverywhere || code == engine.OpUnblock ||
			code == engine.OpFollow
		require.Equal(t, everywhere, op.Within(slots), "%d", code)
	}
	limiterOf := engine.Op{Code: engine.OpReset, Key: engine.LimiterName("bar", 0, []byte("key"))}
	require.True(t, limiterOf.Within(slots), "a policy's limiter is where its key is")
	limiterOf.Key = engine.LimiterName("key", 0, []byte("bar"))
	require.False(t, limiterOf.Within(slots))
}

// TestOneGroupHasNoSlots checks that the first entry of a cluster with one group equals the first entry of an older
// weir.
func TestOneGroupHasNoSlots(t *testing.T) {
	f := ConstantsOf(0, 1)
	f.ClusterID, f.IDLifetimeNs = "c", 7
	require.JSONEq(t, `{"ClusterID":"c","IDLifetimeNs":7,"TestClock":false}`, string(f.Encode()))
	require.Equal(t, hashslot.All, f.Owned())
}

// TestImpossibleGroups checks that a node ends at a first entry with constants that no leader proposes.
func TestImpossibleGroups(t *testing.T) {
	good := ConstantsOf(3, 4)
	good.ClusterID, good.IDLifetimeNs = "c", 7
	for name, spoil := range map[string]func(*Constants){
		"no slots":              func(f *Constants) { f.Slots = nil },
		"three groups":          func(f *Constants) { f.Groups = 3 },
		"group 4 of 4":          func(f *Constants) { f.Group = 4 },
		"group -1":              func(f *Constants) { f.Group = -1 },
		"a slot too many":       func(f *Constants) { f.Slots.Last = hashslot.Count },
		"the ends are reversed": func(f *Constants) { f.Slots = &hashslot.Range{First: 2, Last: 1} },
	} {
		f := good
		f.Slots = &hashslot.Range{First: good.Slots.First, Last: good.Slots.Last}
		spoil(&f)
		m := newTestMachine(t)
		m.foundAs(f)
		require.Len(t, m.fatal, 1, name)
	}
	m := newTestMachine(t)
	m.foundAs(good)
	require.Empty(t, m.fatal)
}

// TestSlotsSurviveASnapshot checks that an image contains the range of slots of the group.
func TestSlotsSurviveASnapshot(t *testing.T) {
	m := theGroup(t)
	again, err := decodeState(m.State.Encode())
	require.NoError(t, err)
	require.Equal(t, m.State, again)
}
