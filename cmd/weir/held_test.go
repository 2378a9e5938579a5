package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// heldConnections are enough for their memory to stand out from what a process
	// takes anyway, and few enough for any limit on descriptors.
	heldConnections = 2000
	// heldBytes is twice what docs/operations.md says of an idle connection: garbage
	// that waits to be collected is in it.
	heldBytes = 16 << 10
)

// What a connection took to be answered it does not keep: thousands that wait cost a
// server little each.
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
