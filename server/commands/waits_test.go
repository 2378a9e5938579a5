package commands

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/httpfields"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

// TestReasonsForNever checks what /check and Envoy are told when no wait helps: each reason has a text.
func TestReasonsForNever(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		before string
		cost   int
		want   httpfields.Reason
	}{
		"a cost above the limit":     {"LIMIT FIXED 1h 3", "", 4, httpfields.NeverFits},
		"above what is not reserved": {"LIMIT FIXED 1h 4 RESERVED 50%", "", 3, httpfields.NeverFits},
		"above, though blocked":      {"LIMIT FIXED 1h 3", "RL.BLOCK k 1s", 4, httpfields.NeverFits},
		"used up for ever":           {"LIMIT FIXED FOREVER 1", "RL.CHECK web:p k", 1, httpfields.UsedUp},
		"blocked for ever":           {"LIMIT FIXED 1h 3", "RL.BLOCK k FOREVER", 1, httpfields.Blocked},
		"blocked, and a queue":       {"LIMIT LEAKYBUCKET 1/s 0", "RL.BLOCK k FOREVER", 1, httpfields.Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := checked(t, Config{}, httpapi.CheckProtected)
			c1 := s.client(t)
			require.NotContains(t, c1.say("RL.POLICY SET web:p "+c.policy), "ERR")
			if c.before != "" {
				require.NotContains(t, c1.say(c.before), "ERR")
			}
			w := askFrom(h, here, fmt.Sprintf("/check/web:p?cost=%d&key=k", c.cost))
			require.Equal(t, http.StatusTooManyRequests, w.Code)
			require.Contains(t, w.Body.String(), c.want.String())
			require.Equal(t, "31536000", w.Header().Get("Retry-After"))
			_, envoy := serveRLS(t, s.Shared)
			out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(withHits(entries("p", "k"), uint64(c.cost))))
			require.NoError(t, err)
			require.Equal(t, rlspb.Code_OVER_LIMIT, out.OverallCode)
			require.Contains(t, string(out.RawBody), c.want.String())
			require.Nil(t, out.Statuses[0].DurationUntilReset)
		})
	}
}

// TestWaitsOfCenturies checks that a wait above the longest duration of Go, 292 years, becomes no short one.
func TestWaitsOfCenturies(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	c := s.client(t)
	require.NotContains(t, c.say("RL.POLICY SET web:p LIMIT TOKENBUCKET 1/d 213504"), "ERR")
	const check = "/check/web:p?cost=213504&key=k"
	require.Equal(t, http.StatusNoContent, askFrom(h, here, check).Code)
	w := askFrom(h, here, check)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "9223372037", w.Header().Get("Retry-After"))
	_, envoy := serveRLS(t, s.Shared)
	out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(withHits(entries("p", "k"), 213504)))
	require.NoError(t, err)
	require.EqualValues(t, 213504*86400, out.Statuses[0].DurationUntilReset.Seconds)
	require.Contains(t, fields(out), "Retry-After: 9223372037\n")
}

// TestEnvoyReadsWholeSeconds checks that waits for Envoy are rounded up to seconds, because Envoy cuts them.
func TestEnvoyReadsWholeSeconds(t *testing.T) {
	s := newTestServer(t, Config{})
	require.NotContains(t, s.client(t).say("RL.POLICY SET web:p LIMIT TOKENBUCKET 10/6s 1"), "ERR")
	_, envoy := serveRLS(t, s.Shared)
	for range 2 {
		out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(entries("p", "k")))
		require.NoError(t, err)
		require.Equal(t, time.Second, out.Statuses[0].DurationUntilReset.AsDuration(), "600 ms")
	}
}

// TestPriorityOfEnvoyIsExact checks that only the value high takes the reserve.
func TestPriorityOfEnvoyIsExact(t *testing.T) {
	s := newTestServer(t, Config{})
	require.NotContains(t, s.client(t).say("RL.POLICY SET web:p LIMIT FIXED 1h 2 RESERVED 50%"), "ERR")
	_, envoy := serveRLS(t, s.Shared)
	ask := func(priority string) rlspb.Code {
		out, err := envoy.ShouldRateLimit(t.Context(), rlsCall(entries("p", "k", "weir_priority", priority)))
		require.NoError(t, err)
		return out.OverallCode
	}
	require.Equal(t, rlspb.Code_OK, ask("normal"))
	require.Equal(t, rlspb.Code_OVER_LIMIT, ask("HIGH"))
	require.Equal(t, rlspb.Code_OK, ask("high"))
}

// TestALimitOfNothing checks that a descriptor with a limit of 0 has nothing left.
func TestALimitOfNothing(t *testing.T) {
	s := newTestServer(t, Config{})
	_, envoy := serveRLS(t, s.Shared)
	out, err := envoy.ShouldRateLimit(t.Context(),
		rlsCall(withLimit(withHits(entries("p", "k"), 0), 0, rlspb.Unit_DAY)))
	require.NoError(t, err)
	require.Equal(t, rlspb.Code_OVER_LIMIT, out.OverallCode)
	require.Zero(t, out.Statuses[0].LimitRemaining)
	require.Zero(t, out.Statuses[0].CurrentLimit.RequestsPerUnit)
	require.Contains(t, string(out.RawBody), httpfields.NeverFits.String())
}

// TestBlockWithoutAddress checks that a block of an address is not skipped where the header of from_header has no
// address: the address of the connection counts, and weir logs it.
func TestBlockWithoutAddress(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	require.NotContains(t, s.client(t).say("RL.BLOCK ip:127.0.0.1 1h EVERYWHERE"), "ERR")
	for i, headers := range [][]string{nil, {"X-Real-IP", ""}, {"X-Real-IP", "nowhere"}} {
		w := askFrom(h, here, fmt.Sprint("/check/api?from_header=X-Real-IP&key=user:", i), headers...)
		require.Equal(t, http.StatusTooManyRequests, w.Code, "%q", headers)
	}
	require.Equal(t, http.StatusNoContent,
		askFrom(h, here, "/check/api?from_header=X-Real-IP&key=user:9", "X-Real-IP", "192.0.2.1").Code)
}

// TestNAT64IsItsIPv4Address checks that an IPv4 address behind NAT64 has the limiter and the block of the IPv4 address.
func TestNAT64IsItsIPv4Address(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	c := s.client(t)
	for _, key := range []string{"64:ff9b::192.0.2.1", "192.0.2.1"} {
		require.Equal(t, http.StatusNoContent, askFrom(h, here, "/check/api?key="+key).Code)
	}
	require.Equal(t, http.StatusTooManyRequests, askFrom(h, here, "/check/api?key=64:ff9b::c000:201").Code)
	require.Equal(t, http.StatusNoContent, askFrom(h, here, "/check/api?key=64:ff9b::192.0.2.2").Code)
	require.NotContains(t, c.say("RL.BLOCK ip:192.0.2.3 1h EVERYWHERE"), "ERR")
	require.Equal(t, http.StatusTooManyRequests, askFrom(h, here, "/check/api?key=64:ff9b::192.0.2.3").Code)
	require.Contains(t, c.say("RL.CHECK api user:1 FROM 64:ff9b::192.0.2.3"), "0 0 3600000")
	require.Contains(t, c.say("RL.BLOCK ip:64:ff9b::/64 1h EVERYWHERE"), "ERR", "no client is this network")
	require.Contains(t, c.say("RL.BLOCK ip:64:ff9b::192.0.2.3 1h EVERYWHERE"), "must be ip:192.0.2.3")
}

// TestEveryRefusalTellsWhenToTryAgain asks each path of the HTTP port in states in which it answers 429 or 503. Some
// clients wait by Retry-After alone.
func TestEveryRefusalTellsWhenToTryAgain(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	require.NotContains(t, s.client(t).say("RL.BLOCK k FOREVER"), "ERR")
	seen := map[int]int{}
	all := func() {
		for _, path := range []string{"/check/api?key=k", "/check/api?key=free", "/check/api?error_status=429&key=free",
			"/check/api?error_status=503&fields=none&key=k", "/readyz", "/metrics", "/status.json", "/key.json?key=k", "/"} {
			w := askFrom(h, here, path)
			if seen[w.Code]++; w.Code == http.StatusTooManyRequests || w.Code == http.StatusServiceUnavailable {
				seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
				require.NoError(t, err, path)
				require.Positive(t, seconds, path)
			}
		}
	}
	all()
	table := s.Limiter.Backend().(*servertest.TableLimiter)
	table.Mu.Lock()
	table.Err = limiter.ErrClusterDown
	table.Mu.Unlock()
	all()
	table.Mu.Lock()
	table.Err = nil
	table.Mu.Unlock()
	s.Draining.Store(true)
	all()
	require.GreaterOrEqual(t, seen[429], 4, seen)
	require.GreaterOrEqual(t, seen[503], 4, seen)
}

// TestWaitsAtTheEdges compares the waits that /check and Envoy are told with the time at which the same request is
// admitted. Both round up to seconds. (An admission by a leaky bucket is delayed in real time.)
func TestWaitsAtTheEdges(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	_, envoy := serveRLS(t, s.Shared)
	c, table := s.client(t), s.Limiter.Backend().(*servertest.TableLimiter)
	rng, denied := rand.New(rand.NewPCG(1, 39)), 0
	for i := range 200 {
		limit := []string{"TOKENBUCKET 1/%dms 3", "FIXED %dms 3", "FIXED %dms 3 FIRST",
			"SLIDING %dms 3", "SLIDINGCOUNTER %dms 3", "TOKENBUCKET 1/%dms 4 MAXWAIT 2s RESERVED 50%%"}[rng.IntN(6)]
		terms := fmt.Sprintf(" LIMIT "+limit, 100+rng.IntN(9000))
		if rng.IntN(4) == 0 {
			terms += fmt.Sprintf(" RETRYAFTER %dms", 1+rng.IntN(3000))
		}
		require.NotContains(t, c.say(fmt.Sprint("RL.POLICY SET web:p", i, terms)), "ERR", terms)
		cost := 1 + rng.IntN(2)
		check := fmt.Sprintf("/check/web:p%d?cost=%d&key=k", i, cost)
		var w *httptest.ResponseRecorder
		for w = askFrom(h, here, check); w.Code == http.StatusNoContent; w = askFrom(h, here, check) {
			table.Advance(time.Duration(rng.IntN(20)) * time.Millisecond)
		}
		if rng.IntN(3) == 0 {
			require.NotContains(t, c.say(fmt.Sprintf("RL.BLOCK k %dms", 1+rng.IntN(5000))), "ERR")
			w = askFrom(h, here, check)
		}
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		retry, _ := strconv.Atoi(w.Header().Get("Retry-After"))
		exact := strings.Fields(c.say(fmt.Sprintf("RL.CHECK web:p%d k COST %d", i, cost)))[2]
		ms, err := strconv.Atoi(exact)
		require.NoError(t, err)
		require.Equal(t, (ms+999)/1000, retry, terms)
		out, err := envoy.ShouldRateLimit(t.Context(),
			rlsCall(withHits(entries(fmt.Sprint("p", i), "k"), uint64(cost))))
		require.NoError(t, err)
		require.EqualValues(t, retry, out.Statuses[0].DurationUntilReset.Seconds, terms)
		if !strings.Contains(terms, "RETRYAFTER") {
			table.Advance(time.Duration(ms-1) * time.Millisecond)
			require.Contains(t, c.say(fmt.Sprintf("RL.CHECK web:p%d k COST %d", i, cost)), "0 ", "a millisecond early")
			table.Advance(-time.Duration(ms-1) * time.Millisecond)
		}
		table.Advance(time.Duration(retry) * time.Second)
		require.Equal(t, http.StatusNoContent, askFrom(h, here, check).Code, "%s after %d s", terms, retry)
		denied++
	}
	require.Equal(t, 200, denied)
}

// TestExplainAboveTheReserve checks that RL.EXPLAIN does not blame a window without end for a cost that never fits.
func TestExplainAboveTheReserve(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	require.NotContains(t, c.say("RL.POLICY SET p LIMIT FIXED 1h 4 RESERVED 50%"), "ERR")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK p k COST 3"), "above the part of the limit of 4")
	require.Contains(t, c.say("RL.EXPLAIN RL.CHECK p k COST 3 PRIORITY high"), "which leaves 1 of 4")
}
