package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
)

// TestPlacementOfStoredEntries checks that each entry of a key, and what belongs to the key, is in the slot of the key.
func TestPlacementOfStoredEntries(t *testing.T) {
	table := engine.NewTable(engine.Options{TrackChanges: true})
	limit := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10}
	policy := &engine.PolicyChange{Terms: &engine.Policy{Limits: []engine.PolicyLimit{{Limit: limit}}}}
	ops := []engine.Op{
		{Code: engine.OpPolicy, Key: []byte("p"), Policy: policy},
		{Key: []byte("foo"), Cost: 1, Limit: limit, ID: []byte("bar")},
		{Code: engine.OpReserve, Key: []byte("foo"), Text: []byte("p"), ID: []byte("{foo}1"), Cost: 1, TTLNs: 1e9},
		{Code: engine.OpReserve, Key: []byte("foo"), Text: []byte("p"), ID: []byte("bar"), Cost: 1, TTLNs: 1e9},
		{Code: engine.OpBlock, Key: []byte("{foo}x"), TTLNs: 1e9},
		{Code: engine.OpBlockEverywhere, Key: []byte("bar"), TTLNs: 1e9},
	}
	table.Decide(engine.Stamp{NowNs: 1e18}, ops, make([]engine.Decision, len(ops)))
	got := map[string]engine.Placement{}
	var across []string
	foo := hashslot.Of([]byte("foo"))
	require.NoError(t, table.Drain(100, func(chunk []engine.Change) error {
		for _, c := range chunk {
			at, err := engine.PlacementOf(c)
			require.NoError(t, err)
			got[string(c.Key)] = at
			if engine.SplitHold(c, hashslot.Range{First: at.Slot, Last: at.Slot}) {
				across = append(across, string(c.Key))
			}
		}
		return nil
	}))
	bar := hashslot.Of([]byte("bar"))
	require.Equal(t, map[string]engine.Placement{
		"pp": {Policy: true}, "lfoo": {Slot: foo}, "t\x03\x00foobar": {Slot: foo}, "h{foo}1": {Slot: foo},
		"hbar": {Slot: bar}, "lpolicy|p|0|foo": {Slot: foo}, "cpolicy|p|0|foo": {Slot: foo},
		"b{foo}x": {Slot: foo, Block: true}, "bbar": {Slot: bar, Block: true, BlockEverywhere: true},
	}, got)
	require.Equal(t, []string{"hbar"}, across)
	for _, c := range []engine.Change{{}, {Key: []byte("lfoo")}, {Key: []byte("l"), Value: []byte{1}},
		{Key: []byte("t\x09\x00foo"), Value: []byte{1}}} {
		_, err := engine.PlacementOf(c)
		require.ErrorIs(t, err, engine.ErrStored)
	}
}
