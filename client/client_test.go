package client_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/weirtest"
	"github.com/weir-project/weir/limiter"
)

func TestDecisionsSayAllThereIs(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{DenialKeys: -1})
	bucket := client.TokenBucket(client.PerSecond(10), 100)
	ask := func(q client.Request) client.Decision {
		t.Helper()
		q.Rule, q.Key = bucket, "user:42"
		return decide(t, c, q)
	}
	on := client.Decision{Source: client.FromServer, Limit: 100}
	want := on
	want.Allowed, want.Granted, want.Remaining, want.ResetAfter = true, 1, 99, 100*time.Millisecond
	require.Equal(t, want, ask(client.Request{}))
	want = on
	want.Remaining, want.RetryAfter, want.ResetAfter = 99, 100*time.Millisecond, 100*time.Millisecond
	require.Equal(t, want, ask(client.Request{Cost: 100}))
	want.RetryAfter = client.Never
	require.Equal(t, want, ask(client.Request{Cost: 101}))
	want = on
	want.Allowed, want.Remaining, want.ResetAfter = true, 99, 100*time.Millisecond
	require.Equal(t, want, ask(client.Request{Peek: true}))
	want.Granted, want.Remaining, want.ResetAfter = 99, 0, 10*time.Second
	require.Equal(t, want, ask(client.Request{Cost: 100, Partial: true}))
	want.Granted, want.RetryAfter, want.ResetAfter = 1, 100*time.Millisecond, 10100*time.Millisecond
	require.Equal(t, want, ask(client.Request{MaxWait: time.Second}))
}

func TestPoliciesTogether(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	for name, max := range map[string]int64{"org": 100, "user": 2} {
		version, err := c.SetPolicy(
			t.Context(), name, client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, max)}})
		require.NoError(t, err)
		require.EqualValues(t, 1, version)
	}
	q := client.Request{Rule: client.Policy("org"), Key: "acme", Also: []client.Pair{{Policy: "user", Key: "42"}},
		Cost: 2}
	d := decide(t, c, q)
	require.True(t, d.Allowed)
	require.Equal(t, "user", d.Policy)
	require.False(t, decide(t, c, q).Allowed)
	d = decide(t, c, client.Request{Rule: client.Policy("org"), Key: "acme", Peek: true})
	require.EqualValues(t, 98, d.Remaining, "a denial must take nothing from any of the requests")
	_, err := c.Take(t.Context(), client.Policy("no-such"), "k")
	require.ErrorIs(t, err, client.ErrRefused)
}

func TestPipeline(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.FixedFirst(time.Hour, 3)
	qs := make([]client.Request, 5)
	for i := range qs {
		qs[i] = client.Request{Rule: rule, Key: "k"}
	}
	qs[1].Key = ""
	ds, err := c.DecideAll(t.Context(), qs)
	require.ErrorIs(t, err, client.ErrBadRequest)
	require.ErrorContains(t, err, "request 1:")
	allowed := ""
	for _, d := range ds {
		allowed += map[bool]string{true: "y", false: "n"}[d.Allowed]
	}
	require.Equal(t, "ynyyn", allowed)
	require.Empty(t, qs[0].ID, "the caller's requests must not change")
}

func TestSlots(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.Slots(1, 30*time.Second)
	slot, d, err := c.Acquire(t.Context(), rule, "job")
	require.NoError(t, err)
	require.True(t, d.Allowed)
	none, d, err := c.Acquire(t.Context(), rule, "job")
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, 30*time.Second, d.RetryAfter)
	held, err := slot.Renew(t.Context(), time.Minute)
	require.NoError(t, err)
	require.True(t, held)
	s.Advance(45 * time.Second)
	held, err = slot.Release(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	held, err = slot.Renew(t.Context(), time.Minute)
	require.NoError(t, err)
	require.False(t, held)
	slot, _, err = c.Acquire(t.Context(), rule, "job")
	require.NoError(t, err)
	require.NotNil(t, slot, "a denial of slots must not be remembered")
	_, _, err = c.Acquire(t.Context(), probe, "job")
	require.ErrorIs(t, err, client.ErrBadRequest)
}

func TestSettling(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	ctx, rule := t.Context(), client.FixedFirst(time.Hour, 2)
	take := func() bool { return decide(t, c, client.Request{Rule: rule, Key: "k"}).Allowed }
	require.Equal(t, []bool{true, true, false}, []bool{take(), take(), take()})
	left, err := c.Refund(ctx, "k", 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, left)
	require.Equal(t, []bool{true, false}, []bool{take(), take()})
	n, err := c.Reset(ctx, "k", "idle")
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.NoError(t, c.Block(ctx, "k", time.Hour, "abuse"))
	require.False(t, take())
	info, err := c.Inspect(ctx, "k")
	require.NoError(t, err)
	require.True(t, info.Blocked)
	require.Equal(t, "abuse", info.Reason)
	require.NoError(t, c.BlockAtLeast(ctx, "k", time.Minute, "shorter"))
	info, err = c.Inspect(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "abuse", info.Reason)
	require.NoError(t, c.BlockAtLeast(ctx, "k", 2*time.Hour, "longer"))
	info, err = c.Inspect(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "longer", info.Reason)
	was, err := c.Unblock(ctx, "k")
	require.NoError(t, err)
	require.True(t, was)
	require.True(t, take())
	why, err := c.Explain(ctx, client.Request{Rule: rule, Key: "k", Cost: 3})
	require.NoError(t, err)
	require.Equal(t, client.Never, why.RetryAfter)
	require.Contains(t, why.Why, "above the limit")
}

func TestDenialsAreRemembered(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{DenialKeys: 2})
	rule := client.FixedFirst(time.Hour, 2)
	ask := func(key string, cost int64) client.Decision {
		return decide(t, c, client.Request{Rule: rule, Key: key, Cost: cost})
	}
	require.False(t, ask("k", 3).Allowed)
	require.Equal(t, client.FromServer, ask("k", 3).Source, "a request that never fits must not be remembered")
	ask("k", 1)
	require.False(t, ask("k", 2).Allowed)
	before := s.Decided.Load()
	again := ask("k", 2)
	require.Equal(t, client.FromMemory, again.Source)
	require.LessOrEqual(t, again.RetryAfter, time.Hour)
	require.Equal(t, before, s.Decided.Load())
	require.True(t, ask("k", 1).Allowed, "a smaller cost may still fit")
	other := client.FixedFirst(time.Hour, 20)
	require.True(t, decide(t, c, client.Request{Rule: other, Key: "k", Cost: 2}).Allowed,
		"a denial must not affect another rule")

	for _, key := range []string{"a", "b", "c", "d"} { // more keys than the memory for denials holds
		ask(key, 2)
		require.False(t, ask(key, 1).Allowed)
		require.Equal(t, client.FromMemory, ask(key, 1).Source)
	}
	require.NotZero(t, c.Stats().FromMemory)
}

func TestBadChoicesAreNamed(t *testing.T) {
	s := weirtest.Start(t)
	for want, o := range map[string]client.Options{
		"WhenDown":      {},
		"LocalFraction": {WhenDown: client.Local, LocalFraction: 1.1},
		"Instances":     {WhenDown: client.Local, Instances: -1},
		"Timeout":       {WhenDown: client.Open, Timeout: time.Nanosecond},
	} {
		_, err := client.New(s.Redis(), o)
		require.ErrorIs(t, err, client.ErrBadOptions)
		require.ErrorContains(t, err, want)
	}
	deaf := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer deaf.Close()
	_, err := client.New(deaf, client.Options{WhenDown: client.Open})
	require.ErrorContains(t, err, "ContextTimeoutEnabled")
	for _, missing := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		_, err := client.New(missing, client.Options{WhenDown: client.Open})
		require.ErrorIs(t, err, client.ErrBadOptions)
		require.ErrorContains(t, err, "the Redis client is nil")
	}

	c := newClient(t, s, client.Options{})
	for _, rule := range []*client.Rule{
		client.TokenBucket(client.PerSecond(0), 1), client.TokenBucket(client.PerSecond(1), 0),
		client.LeakyBucket(client.PerSecond(1), -1),
		client.Fixed(0, 1), client.Sliding(time.Minute, engine.MaxLogUnits+1),
		client.SlidingCounter(400*24*time.Hour, 1),
		client.Quota("DECADE", "", 1), client.Slots(0, 0), client.Strikes(time.Minute), client.Policy("a b"),
		client.Strikes(time.Minute, client.Step{Threshold: 2, Penalty: 1e9}, client.Step{Threshold: 2, Penalty: 1e9}),
		client.Attempts(time.Minute, client.Step{Threshold: 2, Penalty: 1e9, Delay: 1e9}),
		client.Attempts(time.Minute, client.Step{Threshold: 2, Delay: -1}),
		client.Sliding(time.Minute, 1).Extended(), client.Policy("p").Extended(), client.Attempts(0).Extended(),
		client.Policy("a", client.Slots(1, 0)), client.Policy("a", client.Policy("b")),
	} {
		_, err := c.Take(t.Context(), rule, "k")
		require.ErrorIs(t, err, client.ErrBadRule)
	}
	bucket := client.TokenBucket(client.PerSecond(1), 1)
	for _, q := range []client.Request{
		{Key: "k"}, {Rule: bucket}, {Rule: bucket, Key: strings.Repeat("k", 513)}, {Rule: bucket, Key: "k", Cost: -1},
		{Rule: bucket, Key: "k", High: true}, {Rule: bucket, Key: "k", Partial: true, MaxWait: 1},
		{Rule: client.Fixed(time.Minute, 1), Key: "k", MaxWait: 1},
		{Rule: bucket, Key: "k", ID: strings.Repeat("i", 65)},
		{Rule: client.Slots(1, 0), Key: "k"},
		{Rule: client.LeakyBucket(client.PerSecond(1), 1), Key: "k", Partial: true},
	} {
		_, err := c.Decide(t.Context(), q)
		require.ErrorIs(t, err, client.ErrBadRequest)
	}
	require.Zero(t, s.Decided.Load(), "none of these requests may be sent")
}

// TestPlainNumbersAreRefused checks that a number where a time.Duration belongs is an error that says what it means.
// As a window of nanoseconds it would limit nothing. Limits that weir already keeps are still read.
func TestPlainNumbersAreRefused(t *testing.T) {
	for _, rule := range []*client.Rule{
		client.Sliding(60, 5), client.SlidingCounter(60, 5), client.Fixed(60, 5), client.FixedFirst(60, 5),
		client.Slots(5, 60), client.Strikes(60, client.Step{Threshold: 3, Penalty: time.Hour}),
		client.Attempts(time.Hour, client.Step{Threshold: 3, Penalty: 60}),
		client.Strikes(time.Hour, client.Step{Threshold: 3, Delay: 60}),
		client.TokenBucket(client.Rate{Units: 5, Per: 60}, 5), client.LeakyBucket(client.Rate{Units: 5, Per: 60}, 5),
	} {
		require.ErrorIs(t, rule.Err(), client.ErrBadRule)
		require.ErrorContains(t, rule.Err(), "a plain 60 is 60 nanoseconds in Go; write 60*time.Second")
	}
	require.NoError(t, client.Slots(5, 0).Err())
	require.NoError(t, client.Sliding(time.Millisecond, 5).Err())
}

// TestShortWaitsAreSent checks that a wait that a program computes, below a millisecond, is no error.
func TestShortWaitsAreSent(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	bucket := client.TokenBucket(client.PerSecond(1), 1)
	require.True(t, decide(t, c, client.Request{Rule: bucket, Key: "k", MaxWait: 60}).Allowed)
	d, err := c.Queue(t.Context(), client.Request{Rule: bucket, Key: "k"}, 60)
	require.NoError(t, err)
	require.False(t, d.Allowed)
}

// TestRetriesAreSafe checks that the client repeats a request that was certainly not applied. A request that may have
// been applied is only repeated with an ID, so that it counts once.
func TestRetriesAreSafe(t *testing.T) {
	for name, c := range map[string]struct {
		ids      bool
		answer   error
		applied  bool // the server applies the first attempt, and its answer is lost
		attempts int64
		used     int64
		source   client.Source // FromBusy: denied
	}{
		"try again":       {false, limiter.ErrTryAgain, false, 2, 1, client.FromServer},
		"no leader":       {false, limiter.ErrClusterDown, false, 2, 1, client.FromServer},
		"overloaded":      {false, limiter.ErrOverloaded, false, 2, 1, client.FromServer},
		"unknown":         {false, limiter.ErrUnknownOutcome, true, 1, 1, client.FromBusy},
		"unknown with ID": {true, limiter.ErrUnknownOutcome, true, 2, 1, client.FromServer},
	} {
		t.Run(name, func(t *testing.T) {
			s := weirtest.Start(t)
			var once sync.Once
			s.Instead(func([]engine.Op) (carryOut bool, err error) {
				carryOut = true
				once.Do(func() { carryOut, err = c.applied, c.answer })
				return carryOut, err
			})
			limits := newClient(t, s, client.Options{IDs: c.ids, WhenDown: client.Open})
			d, err := limits.Take(t.Context(), client.FixedFirst(time.Hour, 10), "k")
			require.NoError(t, err)
			require.Equal(t, c.source != client.FromBusy, d.Allowed)
			require.Equal(t, c.source, d.Source)
			require.Equal(t, c.attempts, s.Decided.Load())
			require.Equal(t, c.used, used(t, limits, "k"))
		})
	}
}

func TestRefundsHappenOnce(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	decide(t, c, client.Request{Rule: client.FixedFirst(time.Hour, 10), Key: "k", Cost: 8})
	var once sync.Once
	s.Instead(func([]engine.Op) (bool, error) {
		var err error
		once.Do(func() { err = limiter.ErrUnknownOutcome })
		return true, err
	})
	left, err := c.Refund(t.Context(), "k", 3)
	require.NoError(t, err)
	require.EqualValues(t, 5, left)
}

func TestCallersContextCounts(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Open})
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan struct{})
	leave := make(chan struct{})
	s.Instead(func([]engine.Op) (bool, error) { close(entered); <-leave; return true, nil })
	result := make(chan error, 1)
	go func() {
		_, err := c.Take(ctx, probe, "k")
		result <- err
	}()
	<-entered
	s.Instead(nil)
	// During a read go-redis observes a deadline but not a cancellation.
	cancel()
	close(leave)
	if err := <-result; err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := c.Take(ctx, probe, "k")
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, c.Down())
}

// TestMoreThanWasDeniedIsAskedFor checks that the client sends a request for more units than a remembered denial,
// because only weir knows how long such a request must wait.
func TestMoreThanWasDeniedIsAskedFor(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.TokenBucket(client.PerSecond(1), 10)
	decide(t, c, client.Request{Rule: rule, Key: "k", Cost: 10})
	require.Equal(t, time.Second, decide(t, c, client.Request{Rule: rule, Key: "k"}).RetryAfter)
	require.Equal(t, 5*time.Second, decide(t, c, client.Request{Rule: rule, Key: "k", Cost: 5}).RetryAfter)
	require.Equal(t, client.Never, decide(t, c, client.Request{Rule: rule, Key: "k", Cost: 11}).RetryAfter)
}

// TestBlocksForgetDenials checks that a block clears the remembered denials of its key. An older denial would let its
// client return before the block ends.
func TestBlocksForgetDenials(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	for range 2 {
		decide(t, c, client.Request{Rule: probe, Key: "k"})
	}
	require.NoError(t, c.Block(t.Context(), "k", time.Hour, ""))
	require.Equal(t, time.Hour, decide(t, c, client.Request{Rule: probe, Key: "k"}).RetryAfter)
}

// TestBlockEverywhere checks that a block of an address everywhere also denies requests without a policy. Remembered
// denials from before it are cleared.
func TestBlockEverywhere(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{})
	key := client.AddressKey(netip.MustParseAddr("2001:DB8:0:7:ffff::1"))
	require.Equal(t, "ip:2001:db8:0:7::/64", key)
	require.Equal(t, "ip:192.0.2.66", client.AddressKey(netip.MustParseAddr("::ffff:192.0.2.66")))
	ask := func(key string) client.Decision { return decide(t, c, client.Request{Rule: probe, Key: key}) }
	asked := []string{key, "login|" + key, "2001:db8:0:7::/64", "web|2001:db8:0:7::/64"}
	for _, key := range asked {
		require.True(t, ask(key).Allowed)
		require.False(t, ask(key).Allowed)
	}
	require.NoError(t, c.BlockEverywhere(t.Context(), key, time.Hour, "abuse"))
	for _, key := range asked {
		require.Equal(t, time.Hour, ask(key).RetryAfter, key)
	}
	was, err := c.Unblock(t.Context(), key)
	require.NoError(t, err)
	require.True(t, was)
	for _, key := range asked {
		require.Less(t, ask(key).RetryAfter, time.Hour, key)
	}
}

// TestSlotsAreTakenOnce checks that a repeated acquire of a held slot renews it, so it is safe after a lost answer.
func TestSlotsAreTakenOnce(t *testing.T) {
	s := weirtest.Start(t)
	var once sync.Once
	s.Instead(func([]engine.Op) (carryOut bool, err error) {
		once.Do(func() { err = limiter.ErrUnknownOutcome })
		return true, err
	})
	c := newClient(t, s, client.Options{})
	slot, d, err := c.Acquire(t.Context(), client.Slots(2, 0), "job")
	require.NoError(t, err)
	require.NotNil(t, slot)
	require.Equal(t, client.FromServer, d.Source)
	require.EqualValues(t, 1, d.Remaining)
	require.EqualValues(t, 1, used(t, c, "job"))
}

// pipelines records the longest pipeline of a Redis client.
type pipelines struct {
	longest int
}

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.longest = max(p.longest, len(cmds))
		return next(ctx, cmds)
	}
}

// TestManyRequestsAtOnce checks that DecideAll sends many requests in order, and in pipelines of bounded length.
func TestManyRequestsAtOnce(t *testing.T) {
	s := weirtest.Start(t)
	var seen pipelines
	rdb := s.Redis()
	rdb.AddHook(&seen)
	const many = 10_000
	qs := make([]client.Request, many)
	for i := range qs {
		qs[i] = client.Request{Rule: client.FixedFirst(time.Hour, many), Key: "k"}
	}
	ds, err := newClientOn(t, rdb, client.Options{}).DecideAll(t.Context(), qs)
	require.NoError(t, err)
	require.Zero(t, ds[many-1].Remaining, "requests must be decided in order")
	require.LessOrEqual(t, seen.longest, 4096)
}
