//go:build weirfaults

package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestWithoutTheSlotCheck checks that a group with the fault NoSlotCheck carries out operations on slots of another
// group.
func TestWithoutTheSlotCheck(t *testing.T) {
	m := theGroup(t)
	m.Faults = faults.Of(faults.NoSlotCheck)
	_, out := m.entry(wire.Header{Term: 1, At: at(0)}, keyOf("bar"))
	require.Equal(t, engine.OK, out[0].Status)
}
