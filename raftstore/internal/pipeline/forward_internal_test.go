package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestForwardedCallsAreOne checks that adjacent forwarded calls merge unless they are atomic, and that each answer
// stays at the position of its call.
func TestForwardedCallsAreOne(t *testing.T) {
	var (
		e    wire.Encoder
		body []byte
	)
	call := func(n int, atomic bool) {
		ops := make([]engine.Op, n)
		for i := range ops {
			ops[i] = oneBucket
		}
		body = e.Call(body, ops, atomic)
	}
	call(1, false)
	call(2, false)
	call(3, true)
	call(1, true)
	call(2, false)
	call(2, false)
	f, err := readForwarded(body)
	require.NoError(t, err)
	type part struct {
		from, ops int
		atomic    bool
	}
	var parts []part
	for _, c := range f.calls {
		parts = append(parts, part{c.from, len(c.ops), c.atomic})
	}
	require.Equal(t, []part{{0, 3, false}, {3, 3, true}, {6, 1, true}, {7, 4, false}}, parts)
	require.Equal(t, 11, f.ops)

	_, err = readForwarded(body[:len(body)-1])
	require.Error(t, err)
}
