package commands

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/httpapi"
)

// TestRLSIsAccountedFor checks that descriptors count like RL.CHECK.
func TestRLSIsAccountedFor(t *testing.T) {
	s := limited(t, Config{})
	_, envoy := serveRLS(t, s.Shared)
	listener, monitor, c := s.client(t), s.client(t), s.client(t)
	listener.say("PSUBSCRIBE weir:denied:*")
	monitor.say("MONITOR")
	c.say("CONFIG SET slowlog-log-slower-than 0")
	c.say("SLOWLOG RESET")
	look := func() (v httpapi.Status) {
		require.NoError(t, json.Unmarshal(visit(newHTTP(s.Shared), "/status.json", nil).Body.Bytes(), &v))
		return v
	}
	look() // the page records denials from here on
	ask := func(d ...*rlspb.Descriptor) codes.Code {
		_, err := envoy.ShouldRateLimit(t.Context(), rlsCall(d...))
		return status.Code(err)
	}
	minute := func() *rlspb.Descriptor {
		return withLimit(entries("user", "b"), 1, rlspb.Unit_MINUTE)
	}
	require.Equal(t, codes.OK, ask(withHits(entries("user", "a"), 6), entries("no", "policy"), minute(), minute()))
	require.Equal(t, "*4\r\n$8\r\npmessage\r\n$13\r\nweir:denied:*\r\n$27\r\nweir:denied:policy:web:user\r\n$1\r\na\r\n"+
		"*4\r\n$8\r\npmessage\r\n$13\r\nweir:denied:*\r\n$17\r\nweir:denied:fixed\r\n$14\r\nrls|web:user|b\r\n",
		listener.fake.messages())
	require.Regexp(t, `\[0 127.0.0.1:\d+\] "RL.CHECK" "web:user" "a" "COST" "6"`, monitor.fake.messages())
	require.Regexp(t, `RL.CHECK a .* 127.0.0.1:\d+`, c.say("SLOWLOG GET"))
	require.Contains(t, c.say("RL.TOP DENIED"), "policy|web:user|0|a 6 0")
	shown := look()
	require.Equal(t, []int64{1, 2}, []int64{shown.Allowed, shown.Limited})
	require.Len(t, shown.Denials, 2)

	s.lim.Err = limiter.ErrTryAgain
	require.Equal(t, codes.Unavailable, ask(entries("user", "a")))
	for series, want := range map[string]string{
		`weir_requests_total{command="rl.check",result="allowed"}`:       "1",
		`weir_requests_total{command="rl.check",result="limited"}`:       "2",
		`weir_policy_requests_total{policy="web:user",result="limited"}`: "1",
		`weir_commands_total{command="rl.check"}`:                        "5",
		`weir_commands_failed_total{command="rl.check"}`:                 "1",
		`weir_error_replies_total{error="TRYAGAIN"}`:                     "1",
		`weir_rls_descriptors_total{result="allowed"}`:                   "1",
		`weir_rls_descriptors_total{result="limited"}`:                   "2",
	} {
		require.Equal(t, want, value(t, s.Shared, series), series)
	}
}

// TestRLSIsPaused checks that CLIENT PAUSE delays Envoys too.
func TestRLSIsPaused(t *testing.T) {
	s := limited(t, Config{})
	_, envoy := serveRLS(t, s.Shared)
	c := s.client(t)
	require.Equal(t, "OK", c.say("CLIENT PAUSE 60000"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := envoy.ShouldRateLimit(ctx, rlsCall(entries("user", "1")))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.Equal(t, "OK", c.say("CLIENT UNPAUSE"))
	_, err = envoy.ShouldRateLimit(t.Context(), rlsCall(entries("user", "1")))
	require.NoError(t, err)
}
