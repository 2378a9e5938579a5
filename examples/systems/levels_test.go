package systems

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// slidingLogSum is the SHA-1 of the script in the levels' document.
const slidingLogSum = "504c42a925470b7ef2e060d65cd0ece7956924c8"

// TestLevels runs the examples of the levels' document in order, at a clock that the test moves.
func TestLevels(t *testing.T) {
	dir := levelsDir(t)
	s := weirproc.Start(t, "--test-clock")
	rdb := s.Redis()
	pass := func(d time.Duration) {
		require.NoError(t, rdb.Do(t.Context(), "DEBUG", "CLOCK", "ADVANCE", d.Milliseconds()).Err())
	}
	app := startNode(t, dir, s.Addr, "dist/server.js")
	url := strings.TrimPrefix(app.line(), "listening on ")
	require.Regexp(t, regexp.MustCompile(`^http://127\.0\.0\.1:\d+$`), url)
	// admits sends n requests that must all be admitted, and returns the answer to one more.
	admits := func(t *testing.T, n int, path, from, user string) (*http.Response, string) {
		for i := range n {
			res, body := visit(t, url+path, from, user)
			require.Equal(t, http.StatusOK, res.StatusCode, "%s, request %d: %s", path, i+1, body)
		}
		return visit(t, url+path, from, user)
	}

	t.Run("token bucket", func(t *testing.T) {
		js := startConsole(t, dir, s.Addr)
		js.says("null", "void (globalThis.bucket = new TokenBucket(100, 10, weir, 'b'))")
		js.says("100", "bucket.getAvailableTokens()")
		js.says("true", "bucket.tryConsume(95)")
		js.says("false", "bucket.tryConsume(6)")
		for range 5 {
			js.says("true", "bucket.tryConsume()")
		}
		js.says("false", "bucket.tryConsume()")
		pass(1550 * time.Millisecond)
		js.says("15", "bucket.getAvailableTokens()") // 15.5, rounded down
		js.says("true", "bucket.tryConsume(15)")
		pass(time.Hour)
		js.says("100", "bucket.getAvailableTokens()")

		res, body := admits(t, 100, "/bucket", "127.0.0.1", "")
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, "Too Many Requests", body)
		pass(2500 * time.Millisecond)
		res, _ = admits(t, 1, "/generate", "127.0.0.1", "") // a costly request takes 25 tokens
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	})

	t.Run("sliding window", func(t *testing.T) {
		js := startConsole(t, dir, s.Addr)
		js.says("null", "void (globalThis.limiter = new SlidingWindowRateLimiter(60000, 3, weir, 's'))")
		js.says("0", "limiter.getResetTime('a')")
		js.says("3", "limiter.getRemainingRequests('a')")
		js.says("true", "limiter.isAllowed('a')")
		js.says("60000", "limiter.getResetTime('a')")
		pass(20 * time.Second)
		js.says("true", "limiter.isAllowed('a')")
		js.says("1", "limiter.getRemainingRequests('a')")
		js.says("40000", "limiter.getResetTime('a')") // the oldest request leaves the window then
		js.says("true", "limiter.isAllowed('a')")
		js.says("false", "limiter.isAllowed('a')")
		js.says("0", "limiter.getRemainingRequests('a')")
		js.says("true", "limiter.isAllowed('b')")
		pass(40 * time.Second)
		js.says("1", "limiter.getRemainingRequests('a')")
		js.says("20000", "limiter.getResetTime('a')")
		js.says("true", "limiter.isAllowed('a')")
		js.says("false", "limiter.isAllowed('a')")
	})

	t.Run("levels", func(t *testing.T) {
		js := startConsole(t, dir, s.Addr)
		js.says("null", "void (globalThis.levels = new MultiLevelRateLimiter({ perSecond: 10, perMinute: 100, "+
			"perHour: 1000, perDay: 1010 }, weir, 'four'))")
		ten := "(async () => { let n = 0; for (let i = 0; i < 12; i++) n += (await levels.isAllowed('u')).allowed; " +
			"return n; })()"
		for minute := range 10 {
			for range 10 {
				js.says("10", ten)
				pass(time.Second)
			}
			if minute < 9 {
				js.says(`{"allowed":false,"retryAfter":50000}`, "levels.isAllowed('u')") // by the limit of the minute
				pass(50 * time.Second)
			}
		}
		js.says(`{"allowed":false,"retryAfter":3050000}`, "levels.isAllowed('u')") // by the limit of the hour
		pass(3050 * time.Second)
		js.says("10", ten)
		pass(time.Second)
		js.says(`{"allowed":false,"retryAfter":82799000}`, "levels.isAllowed('u')") // by the limit of the day
		js.says(`{"allowed":true}`, "levels.isAllowed('another')")
		js.says(`{"allowed":true}`, "new MultiLevelRateLimiter({}, weir, 'none').isAllowed('u')")

		res, body := admits(t, 10, "/levels", "127.0.0.1", "42")
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, "Too Many Requests", body)
		require.Equal(t, "1", res.Header.Get("Retry-After"))
		hour, err := rdb.Do(t.Context(), "RL.INSPECT", "policy|levels|2|42").Result()
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(hour), "used:10]", "what the second denies, the hour does not count")
	})

	t.Run("middleware", func(t *testing.T) {
		res, body := admits(t, 100, "/api", "127.0.0.7", "")
		requireDenied(t, res, body, "100")
		res, _ = visit(t, url+"/api", "127.0.0.8", "")
		require.Equal(t, http.StatusOK, res.StatusCode, "another address")
		require.Equal(t, "99", res.Header.Get("X-RateLimit-Remaining"))
		require.Empty(t, res.Header.Get("Retry-After"))

		res, body = admits(t, 1000, "/api/premium/report", "127.0.0.7", "42")
		requireDenied(t, res, body, "1000")
		res, _ = visit(t, url+"/api/premium", "127.0.0.9", "42")
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode, "the same user elsewhere")
		res, _ = visit(t, url+"/api/premium", "127.0.0.7", "")
		require.Equal(t, "999", res.Header.Get("X-RateLimit-Remaining"), "nobody is logged in: by address")
		pass(time.Minute)
		res, _ = visit(t, url+"/api", "127.0.0.7", "")
		require.Equal(t, http.StatusOK, res.StatusCode)
	})
}

// requireDenied checks that an answer equals the denial of the document's middleware just after the whole limit was
// used.
func requireDenied(t *testing.T, res *http.Response, body, limit string) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	for name, want := range map[string]string{
		"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60", "Retry-After": "60",
		"Content-Type": "application/json; charset=utf-8",
	} {
		require.Equal(t, want, res.Header.Get(name), name)
	}
	require.JSONEq(t, `{"error":"Too Many Requests","retryAfter":60}`, body)
}

// TestLevelsScript checks that the distributed limiter of the document works unchanged, with the document's script.
func TestLevelsScript(t *testing.T) {
	text := script(t, slidingLogSum)
	dir := levelsDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sliding-log.lua"), []byte(text), 0o644))
	s := weirproc.Start(t)
	app := startNode(t, dir, s.Addr, "dist/server.js")
	url := strings.TrimPrefix(app.line(), "listening on ")
	type answer struct {
		Allowed            bool
		Remaining, ResetAt int
	}
	began := time.Now()
	for i := range 101 {
		_, body := visit(t, url+"/distributed", "127.0.0.1", "42")
		var a answer
		require.NoError(t, json.Unmarshal([]byte(body), &a), body)
		if i < 100 {
			require.Equal(t, answer{true, 99 - i, 0}, a)
			continue
		}
		require.Less(t, time.Since(began), time.Minute, "this machine is too slow to judge")
		require.False(t, a.Allowed)
		require.Zero(t, a.Remaining)
		require.Greater(t, a.ResetAt, 0)
		require.LessOrEqual(t, a.ResetAt, 60000)
	}
	left, err := s.Redis().PTTL(t.Context(), "rl:42").Result()
	require.NoError(t, err)
	require.Positive(t, left)
	require.LessOrEqual(t, left, time.Minute)
}
