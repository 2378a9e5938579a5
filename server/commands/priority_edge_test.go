package commands

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/httpapi"
)

// half is a policy of two requests an hour. One of them is reserved for high priority.
const half = "RL.POLICY SET half LIMIT FIXED 1h 2 FIRST RESERVED 50%"

// TestHTTPCheckPriority checks that high priority comes only from the URL, or from a header that the URL names. A
// header that no URL names has no effect.
func TestHTTPCheckPriority(t *testing.T) {
	for name, c := range map[string]struct {
		url      string
		headers  []string
		statuses [3]int
	}{
		"high":   {"/check/half?priority=high&key=k", nil, [3]int{204, 204, 429}},
		"HIGH":   {"/check/half?priority=HIGH&key=k", nil, [3]int{204, 204, 429}},
		"normal": {"/check/half?priority=normal&key=k", nil, [3]int{204, 429, 429}},
		"not given": {"/check/half?key=k", []string{"X-Priority", "high", "Priority", "high"},
			[3]int{204, 429, 429}},
		"a header": {"/check/half?priority_header=X-Priority&key=k", []string{"X-Priority", "high"},
			[3]int{204, 204, 429}},
		"a header, normal": {"/check/half?priority_header=X-Priority&key=k", []string{"X-Priority", "normal"},
			[3]int{204, 429, 429}},
		"a header, not there": {"/check/half?priority_header=X-Priority&key=k", nil, [3]int{204, 429, 429}},
		"another word":        {"/check/half?priority=urgent&key=k", nil, [3]int{400, 400, 400}},
		"a header, other word": {"/check/half?priority_header=X-Priority&key=k", []string{"X-Priority", "urgent"},
			[3]int{400, 400, 400}},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := checked(t, Config{}, httpapi.CheckProtected)
			require.Equal(t, "1", s.client(t).say(half))
			for i, want := range c.statuses {
				w := askFrom(h, here, c.url, c.headers...)
				require.Equal(t, want, w.Code, i)
				if want == http.StatusBadRequest {
					require.Equal(t, "ERR priority must be high or normal, not 'urgent'\n", w.Body.String())
				}
			}
		})
	}
}

// TestRLSPriority checks that the entry weir_priority is part of neither the policy nor the key. Of the values that a
// client sends, only high raises the priority.
func TestRLSPriority(t *testing.T) {
	s := newTestServer(t, Config{})
	require.Equal(t, "1", s.client(t).say("RL.POLICY SET web:user LIMIT FIXED 1h 2 FIRST RESERVED 50%"))
	_, envoy := serveRLS(t, s.Shared)
	ask := func(pairs ...string) rlspb.Code {
		out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(entries(pairs...)))
		require.NoError(t, err)
		return out.OverallCode
	}
	const ok, over = rlspb.Code_OK, rlspb.Code_OVER_LIMIT
	require.Equal(t, ok, ask("user", "42"))
	require.Equal(t, over, ask("user", "42"))
	require.Equal(t, over, ask("user", "42", "weir_priority", "normal"))
	require.Equal(t, over, ask("user", "42", "weir_priority", "\x00urgent"))
	require.Equal(t, ok, ask("user", "high"))
	require.Equal(t, over, ask("user", "high"), "high as the value of another entry must not raise the priority")
	require.Equal(t, ok, ask("weir_priority", "high", "user", "42"))
	require.Equal(t, over, ask("weir_priority", "high", "user", "42"))

	out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(
		withLimit(entries("weir_priority", "high", "user", "b"), 1, rlspb.Unit_MINUTE),
		withLimit(entries("user", "b"), 1, rlspb.Unit_MINUTE)))
	require.NoError(t, err)
	require.Equal(t, []rlspb.Code{ok, over}, codesOf(out),
		"both priorities must count in the same limiter")
}
