package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// heldConnections is large enough for their memory to exceed the memory of an empty process, and small enough for
	// any limit on descriptors.
	heldConnections = 2000
	// heldBytes is twice the size of an idle connection in docs/operations.md, because it includes garbage that is not
	// collected yet.
	heldBytes = 16 << 10
)

// TestHeldConnectionsCostLittle checks that a connection does not keep the memory of its answers, so thousands of idle
// connections cost little.
func TestHeldConnectionsCostLittle(t *testing.T) {
	p := start(t, "--data-dir=")
	resident := func() float64 { return p.metric("process_resident_memory_bytes") }
	p.do("PING")
	before := resident()
	for range heldConnections {
		c := p.dial()
		t.Cleanup(func() { _ = c.Close() })
		_, err := c.Do("RL.TOKENBUCKET", "key", "1000000/s", "1000000")
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, p.metric("weir_connected_clients"), float64(heldConnections))
	require.Less(t, (resident()-before)/heldConnections, float64(heldBytes))
}
