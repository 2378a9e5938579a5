package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestChecksDoNotShareCachedState checks that state cached by a check is never used for another policy, another
// priority, or an earlier version of the policy.
func TestChecksDoNotShareCachedState(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{Shards: 1})
	limits := []engine.PolicyLimit{quotaLimit(100), quotaLimit(200)} // shared by all three policies
	decideAt(table, at, setPolicy("a", engine.Policy{Limits: limits}))
	decideAt(table, at, setPolicy("b", engine.Policy{Limits: limits}))
	decideAt(table, at, setPolicy("kept", engine.Policy{Limits: limits, Reserved: 500}))
	left := func(op engine.Op) int64 { return decideAt(table, at, op).Remaining }
	for i := range int64(5) {
		require.Equal(t, 100-(i+1), left(check(1, "a", "k")))
		require.Equal(t, 100-2*(i+1), left(check(2, "b", "k")))
		require.Equal(t, 50-(4*i+1), left(check(1, "kept", "k")))
		high := check(3, "kept", "k")
		high.High = true
		require.Equal(t, 100-4*(i+1), left(high))
		require.Equal(t, 100-(i+1), left(check(0, "a", "k")))
	}
	decideAt(table, at, setPolicy("a", engine.Policy{Limits: limits[1:]}))
	require.EqualValues(t, 200-5-1, left(check(1, "a", "k")),
		"the second limit must use the limiter that the limit at its place had")
	require.EqualValues(t, 90-1, left(check(1, "b", "k")))
}
