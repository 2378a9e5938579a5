package httplimit

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// clocked returns a breaker with the test's clock, and a record of its state changes.
func clocked(t *testing.T, o BreakerOptions) (b *Breaker, pass func(time.Duration), changes *[]string) {
	changes = new([]string)
	o.Changed = func(from, to BreakerState) { *changes = append(*changes, from.String()+" to "+to.String()) }
	b, err := NewBreaker(o)
	require.NoError(t, err)
	now := time.Unix(1_700_000_000, 0)
	b.now = func() time.Time { return now }
	return b, func(d time.Duration) { now = now.Add(d) }, changes
}

// request passes a request and reports its outcome, or returns the retry time if the breaker does not let it pass.
func request(b *Breaker, what outcome) (wait time.Duration) {
	period, wait, ok := b.pass()
	if ok {
		b.settle(period, what)
	}
	return wait
}

func TestBreakerStates(t *testing.T) {
	b, pass, changes := clocked(t, BreakerOptions{Failures: 3, Answers: 4, Pause: 5 * time.Second})
	for _, what := range []outcome{failed, failed, succeeded, unknown, succeeded, failed, succeeded, failed} {
		require.Zero(t, request(b, what))
	}
	require.Equal(t, BreakerClosed, b.State(), "two failures among four answers must not open it")
	require.Zero(t, request(b, failed))
	require.Equal(t, BreakerOpen, b.State())
	require.Equal(t, 5*time.Second, request(b, succeeded))
	pass(4 * time.Second)
	require.Equal(t, time.Second, request(b, succeeded))

	pass(time.Second)
	period, _, ok := b.pass()
	require.True(t, ok)
	require.Equal(t, BreakerHalfOpen, b.State())
	require.Equal(t, 5*time.Second, request(b, succeeded), "only one trial may run at a time")
	b.settle(period, failed)
	require.Equal(t, BreakerOpen, b.State())
	require.Equal(t, 5*time.Second, request(b, succeeded))

	pass(5 * time.Second)
	require.Zero(t, request(b, succeeded))
	require.Equal(t, BreakerClosed, b.State())
	require.Equal(t, []string{"closed to open", "open to half-open", "half-open to open", "open to half-open",
		"half-open to closed"}, *changes)
	for range 2 {
		request(b, failed)
	}
	require.Equal(t, BreakerClosed, b.State(), "failures from before must be forgotten")
}

// TestBreakerAfterManyAnswers checks that a failing handler opens the breaker as fast after any number of good
// answers.
func TestBreakerAfterManyAnswers(t *testing.T) {
	b, _, _ := clocked(t, BreakerOptions{})
	for range 1000 {
		request(b, succeeded)
	}
	for i := range DefaultBreakerFailures {
		require.Equal(t, BreakerClosed, b.State(), i)
		request(b, failed)
	}
	require.Equal(t, BreakerOpen, b.State())
	b, _, _ = clocked(t, BreakerOptions{Failures: 64})
	for range 64 {
		require.Equal(t, BreakerClosed, b.State())
		request(b, failed)
	}
	require.Equal(t, BreakerOpen, b.State(), "the breaker must open with the largest number of answers")
}

// TestBreakerIgnoresLateOutcomes checks that outcomes of requests from before the last state change have no effect.
func TestBreakerIgnoresLateOutcomes(t *testing.T) {
	b, pass, _ := clocked(t, BreakerOptions{Failures: 1, Pause: time.Second})
	early, _, _ := b.pass()
	late, _, _ := b.pass()
	b.settle(early, failed)
	pass(time.Second)
	trial, _, ok := b.pass()
	require.True(t, ok)
	b.settle(late, succeeded)
	require.Equal(t, BreakerHalfOpen, b.State())
	b.settle(trial, succeeded)
	b.settle(late, failed)
	require.Equal(t, BreakerClosed, b.State())
}

// TestBreakerTrialsAreLost checks that a probe without an outcome does not prevent the next probe.
func TestBreakerTrialsAreLost(t *testing.T) {
	b, pass, _ := clocked(t, BreakerOptions{Failures: 1, Pause: time.Second})
	request(b, failed)
	pass(time.Second)
	require.Zero(t, request(b, unknown), "a trial whose client went away must not block the next")
	_, _, ok := b.pass() // this probe gets no outcome
	require.True(t, ok)
	require.Equal(t, time.Second, request(b, succeeded))
	pass(time.Second)
	require.Zero(t, request(b, succeeded))
	require.Equal(t, BreakerClosed, b.State())
}

func TestBreakerOptions(t *testing.T) {
	for want, o := range map[string]BreakerOptions{
		"Failures must be 1 to Answers, which is 10, not -1": {Failures: -1},
		"Failures must be 1 to Answers, which is 4, not 5":   {Failures: 5, Answers: 4},
		"Answers must be 1 to 64, not 65":                    {Answers: 65},
		"Answers must be 1 to 64, not -1":                    {Answers: -1},
		"Pause must be above 0, not -1s":                     {Pause: -time.Second},
	} {
		_, err := NewBreaker(o)
		require.ErrorIs(t, err, ErrBadOptions)
		require.ErrorContains(t, err, want)
	}
}

// guarded returns a server with a breaker around its handler, and a limit of 100 requests in front.
func guarded(t *testing.T, b *Breaker, handler http.Handler) *httptest.Server {
	s := weirtest.Start(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := client.New(s.Redis(), client.Options{WhenDown: client.Closed, Timeout: weirtest.Wait, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	limit, err := New(c, Options{Routes: []Route{
		{Pattern: "/", Name: "api", Rule: client.FixedFirst(time.Hour, 100), Key: ByRoute(), Breaker: b},
	}})
	require.NoError(t, err)
	web := httptest.NewUnstartedServer(limit(handler))
	web.Config.ErrorLog = slog.NewLogLogger(quiet.Handler(), slog.LevelError)
	web.Start()
	t.Cleanup(web.Close)
	return web
}

func ask(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	res, err := http.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}

// TestBreakerAnswers checks the order: the limit first, then the breaker, then the handler.
func TestBreakerAnswers(t *testing.T) {
	b, pass, _ := clocked(t, BreakerOptions{Failures: 3})
	status := http.StatusBadGateway
	web := guarded(t, b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	for range 3 {
		res, _ := ask(t, web.URL)
		require.Equal(t, http.StatusBadGateway, res.StatusCode)
	}
	res, body := ask(t, web.URL)
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, "5", res.Header.Get("Retry-After"))
	require.Equal(t, "96", res.Header.Get("X-RateLimit-Remaining"), "the limit must count before the breaker")
	var problem map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &problem))
	require.Equal(t, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", problem["type"])
	require.Equal(t, "The service is not available at present.", problem["detail"])
	require.NotContains(t, problem, "violated-policies")

	for range 96 {
		res, _ = ask(t, web.URL)
	}
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	res, _ = ask(t, web.URL)
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode, "a request over the limit must get 429 in any state")
	pass(DefaultBreakerPause)
	res, _ = ask(t, web.URL)
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Equal(t, BreakerOpen, b.State(), "a denied request must not be a trial")
}

// TestBreakerWatchesAnswers checks which behaviour of a handler the breaker counts as a failure.
func TestBreakerWatchesAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		handler func(http.ResponseWriter, *http.Request)
		opens   bool
	}{
		"nothing":   {func(http.ResponseWriter, *http.Request) {}, false},
		"a body":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }, false},
		"not found": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, false},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusInternalServerError)
		}, true},
		"an error": {func(w http.ResponseWriter,
			_ *http.Request) {
			http.Error(w, "x", http.StatusInternalServerError)
		}, true},
		"a panic": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"flushed": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(http.StatusInternalServerError) // this is too late
		}, false},
		"a copy": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("x")) }, false},
		"hijacked": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				_ = conn.Close()
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := clocked(t, BreakerOptions{Failures: 1})
			web := guarded(t, b, http.HandlerFunc(c.handler))
			if res, err := http.Get(web.URL); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			web.Close() // the handler has returned
			require.Equal(t, c.opens, b.State() == BreakerOpen)
		})
	}
}

// TestBreakerClientsThatGoAway checks that a client which goes away does not count as a failure. A reverse proxy
// answers 502 then.
func TestBreakerClientsThatGoAway(t *testing.T) {
	b, _, _ := clocked(t, BreakerOptions{Failures: 1})
	reached := make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	}))
	t.Cleanup(backend.Close)
	to, err := url.Parse(backend.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)
	web := guarded(t, b, proxy)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL, nil)
	require.NoError(t, err)
	go func() {
		<-reached
		cancel()
	}()
	_, err = http.DefaultClient.Do(r)
	require.ErrorIs(t, err, context.Canceled)
	web.Close()
	require.Equal(t, BreakerClosed, b.State())
}
