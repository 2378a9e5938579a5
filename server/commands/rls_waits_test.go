package commands

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/weir-project/weir/internal/rlspb"
)

// TestRLSDenialsTellTheWait checks that a denial reports when a unit is free again, which is earlier than the bucket is
// full. An admission reports when the bucket is full.
func TestRLSDenialsTellTheWait(t *testing.T) {
	s := newTestServer(t, Config{})
	require.NotContains(t, s.client(t).say("RL.POLICY SET web:slow LIMIT TOKENBUCKET 1/m 5"), "ERR")
	_, envoy := serveRLS(t, s.Shared)
	call := rlsCall(entries("slow", "7"))
	call.HitsAddend = 5
	out, err := envoy.ShouldRateLimit(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, rlspb.Code_OK, out.OverallCode)
	require.Equal(t, 5*time.Minute, out.Statuses[0].DurationUntilReset.AsDuration())

	call.HitsAddend = 2
	out, err = envoy.ShouldRateLimit(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, rlspb.Code_OVER_LIMIT, out.OverallCode)
	require.Equal(t, 2*time.Minute, out.Statuses[0].DurationUntilReset.AsDuration(), "two units, not five")
	require.Contains(t, fields(out), "Retry-After: 120\n")
}

// TestRLSHeadersOfTheLongerWait checks that the headers of several denials describe the longest wait, in any order of
// the descriptors.
func TestRLSHeadersOfTheLongerWait(t *testing.T) {
	for name, order := range map[string][]string{
		"the longer first": {"long", "short"}, "the shorter first": {"short", "long"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestServer(t, Config{})
			c := s.client(t)
			require.NotContains(t, c.say("RL.POLICY SET web:long LIMIT FIXED 1h 1 FIRST"), "ERR")
			require.NotContains(t, c.say("RL.POLICY SET web:short LIMIT FIXED 1m 1 FIRST"), "ERR")
			_, envoy := serveRLS(t, s.Shared)
			call := rlsCall(entries(order[0], "7"), entries(order[1], "7"))
			_, err := envoy.ShouldRateLimit(t.Context(), call)
			require.NoError(t, err)
			out, err := envoy.ShouldRateLimit(t.Context(), call)
			require.NoError(t, err)
			require.Equal(t, []rlspb.Code{2, 2}, codesOf(out))
			require.Contains(t, fields(out), "Retry-After: 3600\n")
			require.Contains(t, fields(out), `"web:long"`)
			require.NotContains(t, fields(out), `"web:short"`)
			require.Contains(t, string(out.RawBody), `"violated-policies":["web:long"]`)
		})
	}
}
