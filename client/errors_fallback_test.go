package client_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// parrot answers every command with the same decision, or with an error if one is set.
type parrot struct{ err atomic.Value }

func (p *parrot) serve(nc net.Conn) {
	for in := bufio.NewReader(nc); ; {
		head, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words, _ := strconv.Atoi(strings.Trim(head, "*\r\n"))
		name := ""
		for i := range 2 * words { // no word contains a line break
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if i == 1 {
				name = line
			}
		}
		answer, _ := p.err.Load().(string)
		if !strings.HasPrefix(name, "RL.") { // go-redis sends these first
			answer = "-ERR unknown command"
		}
		if answer == "" {
			answer = "*5\r\n:1\r\n:9\r\n:0\r\n:0\r\n:10"
		}
		if _, err := nc.Write([]byte(answer + "\r\n")); err != nil {
			return
		}
	}
}

// TestFallBackOnErrors checks that error answers count as an outage if the caller says so. The fallback decides, the
// start and the end are logged once, and weir then decides again.
func TestFallBackOnErrors(t *testing.T) {
	for _, text := range []string{
		"-OOM command not allowed", "-ERR there is no policy 'api'", "-ERR unknown command 'RL.FIXED'",
		"-WRONGPASS invalid username-password pair",
		"-NOAUTH Authentication required.", "-NOPERM no", "-MOVED 1 127.0.0.1:1",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var book logtest.Buffer
			bird := new(parrot)
			c := newClientOn(t, impostor(t, bird.serve),
				client.Options{WhenDown: client.Local, FallBackOnErrors: true, Logger: book.Logger()})
			rule := client.FixedFirst(time.Hour, 10)
			take := func() client.Decision { return decide(t, c, client.Request{Rule: rule, Key: "k"}) }
			require.Equal(t, client.FromServer, take().Source)
			bird.err.Store(text)
			allowed := 0
			for range 20 {
				d := take()
				require.Equal(t, client.FromFallback, d.Source)
				if d.Allowed {
					allowed++
				}
			}
			require.Equal(t, 5, allowed, "the fallback must admit half of the limit")
			bird.err.Store("")
			require.Eventually(t, func() bool {
				return take().Source == client.FromServer &&
					book.Count("level=INFO") > 0
			}, weirtest.Wait, time.Millisecond)
			require.Equal(t, 1, book.Count("level=WARN"))
			require.Equal(t, 1, book.Count("level=INFO"))
		})
	}
}

// TestMixedErrorsAreOneOutage checks that weir refusing some requests and deciding others is a single outage.
func TestMixedErrorsAreOneOutage(t *testing.T) {
	var book logtest.Buffer
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local, FallBackOnErrors: true, Logger: book.Logger()})
	_, err := c.SetPolicy(
		t.Context(), "api", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, 1000)}})
	require.NoError(t, err)
	for i := range 100 {
		key := fmt.Sprint(i)
		require.Equal(t, client.FromServer, decide(t, c, client.Request{Rule: client.Policy("api"), Key: key}).Source)
		require.Equal(t, client.FromFallback,
			decide(t, c, client.Request{Rule: client.Policy("lost"), Key: key}).Source)
	}
	require.Equal(t, 1, book.Count("level=WARN"))
	require.Zero(t, book.Count("level=INFO"))
}

func TestErrorsAreTheCallersUnlessAsked(t *testing.T) {
	for text, want := range map[string]error{"-OOM no room": client.ErrFull, "-WRONGPASS no": client.ErrRefused,
		"-ERR there is no policy": client.ErrRefused} {
		bird := new(parrot)
		bird.err.Store(text)
		c := newClientOn(t, impostor(t, bird.serve), client.Options{WhenDown: client.Open})
		for range 5 {
			d, err := c.Take(t.Context(), probe, "k")
			require.ErrorIs(t, err, want)
			require.False(t, d.Allowed)
		}
		require.False(t, c.Down())
	}
}

// TestAUsedIDFallsBackToNothing checks that a request whose ID belongs to another request is refused, whatever the
// options: the fallback does not decide it.
func TestAUsedIDFallsBackToNothing(t *testing.T) {
	s := weirtest.Start(t)
	for _, down := range []client.Fallback{client.Open, client.Local} {
		c := newClient(t, s, client.Options{WhenDown: down, FallBackOnErrors: true})
		request := client.Request{Rule: client.FixedFirst(time.Hour, 10), Key: fmt.Sprint("k", down), ID: "x"}
		first := decide(t, c, request)
		require.Equal(t, first, decide(t, c, request))
		request.Cost = 5
		d, err := c.Decide(t.Context(), request)
		require.ErrorIs(t, err, client.ErrIDUsed)
		require.ErrorIs(t, err, client.ErrRefused)
		require.False(t, d.Allowed)

		_, err = c.SetPolicy(t.Context(), "p", client.PolicyTerms{Limits: []*client.Rule{request.Rule}})
		require.NoError(t, err)
		hold := client.Request{Rule: client.Policy("p"), Key: request.Key, ID: "h" + request.Key, Cost: 2}
		_, _, err = c.Reserve(t.Context(), hold, time.Minute)
		require.NoError(t, err)
		hold.Cost = 3
		h, d, err := c.Reserve(t.Context(), hold, time.Minute)
		require.ErrorIs(t, err, client.ErrIDUsed)
		require.Nil(t, h)
		require.False(t, d.Allowed)
	}
}

// TestRedisLogger checks that the lines of go-redis about failed connections go to the program's logger.
func TestRedisLogger(t *testing.T) {
	var book logtest.Buffer
	client.RedisLogger{Logger: book.Logger()}.Printf(t.Context(), "connection pool: %s", "failed to dial")
	require.Zero(t, book.Count("failed"), "debug lines must be dropped")
	debug := slog.New(slog.NewTextHandler(&book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client.RedisLogger{Logger: debug}.Printf(t.Context(), "connection pool: %s", "failed to dial")
	require.Equal(t, 1, book.Count("connection pool: failed to dial"))
}

// TestWrongPasswordIsAnOutage checks that a wrong password is an outage. The client does not send it with every
// request, but with one probe at a time.
func TestWrongPasswordIsAnOutage(t *testing.T) {
	var book logtest.Buffer
	s := weirtest.Start(t)
	rdb := redis.NewClient(
		&redis.Options{Addr: s.Addr, Username: "app", Password: "new", ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	c := newClientOn(t, rdb, client.Options{WhenDown: client.Local, FallBackOnErrors: true, Logger: book.Logger()})
	for range 10 {
		require.Equal(t, client.FromFallback,
			decide(t, c, client.Request{Rule: client.FixedFirst(time.Hour, 1000), Key: "k"}).Source)
	}
	require.Eventually(t, func() bool { return c.Stats().Probes >= 3 }, weirtest.Wait, time.Millisecond)
	require.True(t, c.Down(), "a probe that may not log in must not end the outage")
	require.Equal(t, 1, book.Count("level=WARN"))
	require.Equal(t, 1, book.Count("WRONGPASS"))
}
