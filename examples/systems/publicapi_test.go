package systems

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// TestPublicAPIAlgorithms checks the five algorithms that RATE_LIMIT_ALGORITHM selects, with the document's hundred
// requests a minute.
func TestPublicAPIAlgorithms(t *testing.T) { walkPublicAPIAlgorithms(t, publicAPIBinary(t)) }

func walkPublicAPIAlgorithms(t *testing.T, argv ...string) {
	start := func(t *testing.T, algorithm string) (passes func(int) int, pass, until func(time.Duration)) {
		weir := weirproc.Start(t, "--test-clock")
		rdb := weir.Redis()
		api := startPublicAPI(t, weir.Addr, argv, "RATE_LIMIT_ALGORITHM="+algorithm,
			"RATE_LIMIT_DEFAULT=100", "RATE_LIMIT_WINDOW=60", "RATE_LIMIT_PER_IP=1000", "RATE_LIMIT_BURST=50")
		api.installed(rdb, "env:per-ip")
		return func(n int) int { return api.passesAtOnce(n, "/") },
			func(d time.Duration) { passTime(t, rdb, d) }, func(d time.Duration) { passTimeUntil(t, rdb, d) }
	}
	t.Run("fixed window counter", func(t *testing.T) {
		passes, pass, until := start(t, "fixed_window")
		until(59 * time.Second)
		require.Equal(t, 100, passes(120))
		pass(time.Second)
		require.Equal(t, 100, passes(120), "200 within two seconds: its known weakness")
	})
	t.Run("sliding window log", func(t *testing.T) {
		passes, pass, until := start(t, "sliding_window")
		until(59 * time.Second)
		require.Equal(t, 100, passes(120))
		pass(time.Second)
		require.Zero(t, passes(10), "no fresh maximum at the turn of the minute")
		pass(59 * time.Second)
		require.Equal(t, 100, passes(120))
	})
	t.Run("sliding window counter", func(t *testing.T) {
		passes, pass, until := start(t, "sliding_window_counter")
		until(0)
		require.Equal(t, 100, passes(120))
		pass(105 * time.Second) // 45 s into the next window: a quarter of the hundred still counts
		require.Equal(t, 75, passes(80))
		require.Zero(t, passes(1), "blocked")
	})
	t.Run("token bucket", func(t *testing.T) {
		passes, pass, _ := start(t, "token_bucket")
		require.Equal(t, 50, passes(60), "the burst")
		pass(6 * time.Second)
		require.Equal(t, 10, passes(20), "100 a minute")
		pass(time.Hour)
		require.Equal(t, 50, passes(60), "never more than the capacity")
	})
	t.Run("leaky bucket", func(t *testing.T) {
		passes, pass, _ := start(t, "leaky_bucket")
		begun := time.Now()
		require.Equal(t, 9, passes(20), "one at once, then one each 0.6 s, up to 5 s")
		require.GreaterOrEqual(t, time.Since(begun), 4800*time.Millisecond, "they were held")
		pass(time.Minute)
		require.Equal(t, 1, passes(1))
	})
}

// TestPublicAPI runs the examples of the document, from its strategies to its metrics.
func TestPublicAPI(t *testing.T) { walkPublicAPI(t, publicAPIBinary(t)) }

func walkPublicAPI(t *testing.T, argv ...string) {
	var failing atomic.Bool
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			http.Error(w, "failed", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(backend.Close)
	weir := weirproc.Start(t, "--test-clock", "--policies", publicAPIPolicies)
	rdb := weir.Redis()
	api := startPublicAPI(t, weir.Addr, argv, "BACKEND="+backend.URL,
		"API_KEYS=K1=acme,K2=gold:initech,K3=other,K4=fourth",
		// The document's own block of settings.
		"RATE_LIMIT_ENABLED=true", "RATE_LIMIT_ALGORITHM=sliding_window", "RATE_LIMIT_DEFAULT=1000",
		"RATE_LIMIT_WINDOW=3600",
		"RATE_LIMIT_PER_IP=100", "RATE_LIMIT_PER_USER=10000", "RATE_LIMIT_BURST=50")
	api.installed(rdb, "env:per-user")
	from := func(ip string, more ...string) []string { return append([]string{"X-Forwarded-For", ip}, more...) }
	spend := func(line string) { command(t, rdb, "RL.CHECK "+line) }
	refused := func(t *testing.T, limit, after string, res *http.Response) {
		t.Helper()
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, limit, res.Header.Get("X-RateLimit-Limit"))
		require.Equal(t, "0", res.Header.Get("X-RateLimit-Remaining"))
		require.Equal(t, after, res.Header.Get("Retry-After"))
	}

	t.Run("by address", func(t *testing.T) { // 1000 an hour
		spend("ip ip:192.0.2.1 COST 995")
		require.Equal(t, 5, api.passes(6, http.MethodGet, "/api/users", from("192.0.2.1")...))
		res, _ := api.ask(http.MethodGet, "/api/users", from("192.0.2.1")...)
		refused(t, "1000", "3600", res)
	})
	t.Run("by API key", func(t *testing.T) { // 10000 a day
		spend("api-key user:acme COST 9998")
		require.Equal(t, 2, api.passes(3, http.MethodGet, "/api/users", from("192.0.2.2", "X-Api-Key", "K1")...))
		res, _ := api.ask(http.MethodGet, "/api/users", from("192.0.2.3", "X-Api-Key", "K1")...)
		refused(t, "10000", "86400", res)
		res, _ = api.ask(http.MethodGet, "/api/users", from("192.0.2.3", "X-Api-Key", "K2")...)
		require.Equal(t, http.StatusOK, res.StatusCode, "other limits for some")
	})
	t.Run("by endpoint", func(t *testing.T) { // GET 100, POST 10 a minute
		require.Equal(t, 100, api.passes(110, http.MethodGet, "/api/users", from("192.0.2.4")...))
		require.Equal(t, 10, api.passes(12, http.MethodPost, "/api/users", from("192.0.2.4")...))
		res, _ := api.ask(http.MethodPost, "/api/users", from("192.0.2.4")...)
		refused(t, "10", "60", res)
		info := fmt.Sprint(command(t, rdb, "RL.CHECK ip ip:192.0.2.4 COST 0"))
		require.Equal(t, "[1 890 0 3600000 1000 ip]", info, "a denial by the endpoint took nothing from the address")
	})
	t.Run("for the service", func(t *testing.T) { // 100000 a minute, a tenth of it for those with priority
		passTimeUntil(t, rdb, 0)
		passTime(t, rdb, 2*time.Minute)
		spend("service all COST 89999")
		require.Equal(t, 1, api.passes(2, http.MethodGet, "/api/users", from("192.0.2.5")...))
		require.Equal(t, 0, api.passes(2, http.MethodGet, "/api/users",
			from("192.0.2.6", "X-Api-Key", "K3", "X-Priority", "high")...))
		require.Equal(t, 5, api.passes(5, http.MethodGet, "/api/users", from("192.0.2.6", "X-Api-Key", "K2")...),
			"prioritised")
		passTime(t, rdb, 2*time.Minute)
	})
	t.Run("headers", func(t *testing.T) {
		require.Equal(t, 14, api.passes(14, http.MethodGet, "/api/users", from("192.0.2.7")...))
		res, _ := api.ask(http.MethodGet, "/api/users", from("192.0.2.7")...)
		require.Equal(t, "100", res.Header.Get("X-RateLimit-Limit"))
		require.Equal(t, "85", res.Header.Get("X-RateLimit-Remaining"))
		reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64)
		require.NoError(t, err)
		require.InDelta(t, time.Now().Add(time.Minute).Unix(), reset, 30, "Unix seconds")
		require.Empty(t, res.Header.Get("Retry-After"))
	})
	t.Run("status", func(t *testing.T) { // limit, remaining, used
		require.Equal(t, "[1 85 0 60000 100 users-read]",
			fmt.Sprint(command(t, rdb, "RL.CHECK users-read ip:192.0.2.7 COST 0")))
	})
	t.Run("settings", func(t *testing.T) {
		require.Equal(t, 100, api.passes(110, http.MethodGet, "/", from("192.0.2.8")...))
		res, _ := api.ask(http.MethodGet, "/", from("192.0.2.8")...)
		refused(t, "100", "3600", res)
		spend("env:per-user user:fourth COST 9999")
		require.Equal(t, 1, api.passes(2, http.MethodGet, "/", from("192.0.2.9", "X-Api-Key", "K4")...))
		res, _ = api.ask(http.MethodGet, "/", from("192.0.2.9", "X-Api-Key", "K4")...)
		refused(t, "10000", "3600", res)
		spend("env:default /|user:other COST 998")
		require.Equal(t, 2, api.passes(3, http.MethodGet, "/", from("192.0.2.10", "X-Api-Key", "K3")...))
		res, _ = api.ask(http.MethodGet, "/", from("192.0.2.11", "X-Api-Key", "K3")...)
		refused(t, "1000", "3600", res)
	})
	t.Run("breaker", func(t *testing.T) {
		failing.Store(true)
		statuses := map[int]int{}
		for range 10 {
			res, _ := api.ask(http.MethodGet, "/api/users", from("192.0.2.12")...)
			statuses[res.StatusCode]++
		}
		require.Equal(t, map[int]int{500: 5, 503: 5}, statuses)
		res, _ := api.ask(http.MethodGet, "/api/users", from("192.0.2.12")...)
		require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
		require.Equal(t, "89", res.Header.Get("X-RateLimit-Remaining"), "first the limit, then the breaker")
		spend("ip ip:192.0.2.13 COST 1000")
		res, _ = api.ask(http.MethodGet, "/api/users", from("192.0.2.13")...)
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		failing.Store(false)
		require.Eventually(t, func() bool {
			res, _ := api.ask(http.MethodGet, "/api/users", from("192.0.2.14")...)
			return res.StatusCode == http.StatusOK
		}, weirproc.Wait, 200*time.Millisecond, "closed again")
	})
	t.Run("metrics", func(t *testing.T) {
		_, before := api.ask(http.MethodGet, "/metrics")
		spend("service all COST 41")
		require.Equal(t, 1, api.passes(1, http.MethodGet, "/api/users", from("192.0.2.15")...))
		require.Equal(t, 0, api.passes(1, http.MethodGet, "/api/users", from("192.0.2.1")...), "used up")
		_, after := api.ask(http.MethodGet, "/metrics")
		grew := func(name string) float64 { return sample(t, after, name) - sample(t, before, name) }
		require.EqualValues(t, 2, grew("ratelimit_requests_total"))
		require.EqualValues(t, 1, grew("ratelimit_requests_allowed"))
		require.EqualValues(t, 1, grew("ratelimit_requests_blocked"))
		require.EqualValues(t, 2, grew("ratelimit_avg_response_time_count"))
		require.EqualValues(t, 42, grew(`ratelimit_current_usage{key="all",policy="service"}`))
	})
}

// sample returns the value of a series on a page of metrics.
func sample(t *testing.T, page, series string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(page)
	require.NotNil(t, found, "no %s in\n%s", series, page)
	n, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return n
}

// TestPublicAPISettings checks the switch RATE_LIMIT_ENABLED, and the errors about invalid settings.
func TestPublicAPISettings(t *testing.T) {
	binary := publicAPIBinary(t)
	weir := weirproc.Start(t, "--test-clock", "--policies", publicAPIPolicies)
	api := startPublicAPI(t, weir.Addr, []string{binary}, "RATE_LIMIT_ENABLED=false")
	require.Equal(t, 300, api.passes(300, http.MethodGet, "/api/users"), "no limit")
	for want, env := range map[string]string{
		"RATE_LIMIT_WINDOW must be a whole number of seconds from 1 to 31622400, not":            "RATE_LIMIT_DEFAULT=1000",
		"RATE_LIMIT_ALGORITHM must be fixed_window, sliding_window, sliding_window_counter, tok": "RATE_LIMIT_ALGORITHM=gcra",
	} {
		cmd := exec.Command(binary)
		cmd.Env = append(cmd.Environ(), env)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), want)
	}
}

// TestPublicAPIStrategies checks that requests beyond a limit are denied, queued or prioritised, as the route says.
func TestPublicAPIStrategies(t *testing.T) {
	weir := weirproc.Start(t, "--policies", publicAPIPolicies)
	api := startPublicAPI(t, weir.Addr, []string{publicAPIBinary(t)}, "RATE_LIMIT_DEFAULT=1000",
		"RATE_LIMIT_WINDOW=3600")
	begun := time.Now()
	require.Equal(t, 14, api.passes(14, http.MethodGet, "/api/exports"), "ten at once, four wait their turn")
	require.GreaterOrEqual(t, time.Since(begun), 350*time.Millisecond)
	passed := api.passesAtOnce(60, "/api/exports")
	require.Greater(t, passed, 0, "a second of the queue")
	require.Less(t, passed, 60, "the queue is bounded: the rest is refused")
	require.Equal(t, 10, api.passes(12, http.MethodPost, "/api/users"), "refused at once")
}
