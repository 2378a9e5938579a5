package client

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeWeir replaces weir for a policyCache. It counts how often each policy is fetched.
type fakeWeir struct {
	mu      sync.Mutex
	lost    bool
	limits  map[string]string
	fetched map[string]int
}

func (f *fakeWeir) fetch(_ context.Context, name string) (PolicyInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetched[name]++
	switch limit, there := f.limits[name]; {
	case f.lost:
		return PolicyInfo{}, ErrUnavailable
	case !there:
		return PolicyInfo{}, fmt.Errorf("%w: no such policy", ErrRefused)
	default:
		return PolicyInfo{Name: name, Version: 1, Limits: []string{limit}}, nil
	}
}

func (f *fakeWeir) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeWeir) times(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fetched[name]
}

func newTestCache(f *fakeWeir) (*policyCache, *localLimiter) {
	f.limits, f.fetched = map[string]string{}, map[string]int{}
	c := &Client{local: newLocalLimiter(DefaultLocalFraction)}
	c.options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	cache := newPolicyCache(c)
	cache.fetch = f.fetch
	return cache, c.local
}

func admits(l *localLimiter, policy, key string) (n int) {
	for range 100 {
		if l.decide(&Request{Rule: Policy(policy), Key: key}).Allowed {
			n++
		}
	}
	return n
}

// TestPolicyCache checks when policies are fetched: at the first use, and each minute while they are used. The last
// terms survive an outage of weir and the deletion of the policy. They are dropped after an hour without use.
func TestPolicyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weir := new(fakeWeir)
		cache, local := newTestCache(weir)
		defer cache.close()
		weir.limits["api"] = "FIXED 1h 20 FIRST"
		for range 1000 {
			cache.use("api")
		}
		synctest.Wait()
		time.Sleep(policyRefresh / 2) // from here on, between two refreshes
		require.Equal(t, 1, weir.times("api"))
		require.Equal(t, 10, admits(local, "api", "a"))

		cache.use("other")
		synctest.Wait()
		require.Equal(t, 1, weir.times("other"))
		require.Equal(t, 1, weir.times("api"), "a new policy must be fetched alone")

		weir.set(func() { weir.limits["api"] = "FIXED 1h 40 FIRST" })
		time.Sleep(policyRefresh)
		synctest.Wait()
		require.Equal(t, 20, admits(local, "api", "b"), "other limits must apply although the version is the same")

		weir.set(func() { weir.lost = true })
		cache.use("api")
		time.Sleep(policyRefresh)
		weir.set(func() { weir.lost = false; delete(weir.limits, "api") })
		cache.use("api")
		time.Sleep(policyRefresh)
		synctest.Wait()
		require.Equal(t, 4, weir.times("api"))
		require.Equal(t, 20, admits(local, "api", "c"), "the last known limits must apply")

		time.Sleep(2 * keptUnused * policyRefresh)
		synctest.Wait()
		require.Equal(t, 4, weir.times("api"), "a policy must only be fetched while it is used")
		require.Zero(t, admits(local, "api", "d"))
		require.Zero(t, cache.size)
	})
}

func TestPolicyCacheTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weir := new(fakeWeir)
		cache, local := newTestCache(weir)
		defer cache.close()
		weir.limits["api"], weir.lost = "SLIDING 1h 20", true
		cache.use("api")
		time.Sleep(10*policyRetry + policyRetry/2)
		synctest.Wait()
		require.Equal(t, 11, weir.times("api"), "a policy must be fetched once a second")
		weir.set(func() { weir.lost = false })
		time.Sleep(policyRetry)
		synctest.Wait()
		require.Equal(t, 10, admits(local, "api", "a"))
	})
}

func TestPolicyCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weir := new(fakeWeir)
		cache, _ := newTestCache(weir)
		defer cache.close()
		for i := range 2 * maxCachedPolicies {
			cache.use(fmt.Sprint(i))
		}
		synctest.Wait()
		require.Equal(t, maxCachedPolicies, cache.size)
	})
}

func TestParseLimit(t *testing.T) {
	for _, text := range []string{
		"TOKENBUCKET 10/1s 50", "TOKENBUCKET 1/1m 5 MAXWAIT 2s", "LEAKYBUCKET 10/1s 0", "FIXED 1m 5",
		"FIXED 1m 5 FIRST", "FIXED DAY 5",
		"FIXED MONTH 5 TZ Europe/Berlin", "FIXED FOREVER 5", "SLIDING 1m 5", "SLIDINGCOUNTER 1m 5",
		"STRIKE 15m 4 2s 11 15m", "STRIKE 15m 4 DELAY 2s 11 15m ATTEMPTS", "STRIKE 15m 11 15m EXTEND",
		"STRIKE 15m 11 15m ATTEMPTS EXTEND",
		"SLIDING 60ns 5", "SLIDINGCOUNTER 60ns 5", "FIXED 60ns 5", "FIXED 60ns 5 FIRST", "STRIKE 60ns 4 60ns",
		"TOKENBUCKET 5/60ns 5", "LEAKYBUCKET 5/60ns 5", // older versions accepted these
	} {
		_, err := parseLimit(strings.Fields(text))
		require.NoError(t, err, text)
	}
	for _, text := range []string{
		"", "TOKENBUCKET", "TOKENBUCKET 10/1s", "TOKENBUCKET x 50", "TOKENBUCKET 10/1s x", "TOKENBUCKET 10/1s 0",
		"TOKENBUCKET 10/1s 50 MORE",
		"TOKENBUCKET 10/1s 50 MAXWAIT x", "LATER 1m 5", "FIXED x 5", "FIXED 1m 5 LAST", "SLIDING x 5",
		"STRIKE x 4 2s", "STRIKE 15m 4",
		"STRIKE 15m x 2s", "STRIKE 15m 4 x", "STRIKE 15m 4 DELAY", "STRIKE 15m 4 2s ATTEMPTS 5 3s",
		"STRIKE 15m ATTEMPTS", "SLIDING 1m 5 MORE",
	} {
		_, err := parseLimit(strings.Fields(text))
		require.Error(t, err, text)
	}
}

// TestLocalIdle checks that LocalIdle resets a key that nobody used for this long, and not a moment earlier.
func TestLocalIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := newLocalLimiter(DefaultLocalFraction)
		local.idle = newIdleKeys(time.Minute)
		require.NoError(t, local.install(
			PolicyInfo{Name: "api", Limits: []string{"FIXED 1h 20 FIRST", "SLIDING 1d 20"}}))
		rule := FixedFirst(time.Hour, 20)
		take := func() (n, m int) {
			for range 100 {
				if local.decide(&Request{Rule: rule, Key: "a"}).Allowed {
					m++
				}
			}
			return admits(local, "api", "a"), m
		}
		n, m := take()
		require.Equal(t, [2]int{10, 10}, [2]int{n, m})
		for range 3 {
			time.Sleep(time.Minute - time.Nanosecond)
			n, m = take()
			require.Zero(t, n+m, "a denied key counts as used")
		}
		time.Sleep(time.Minute)
		n, m = take()
		require.Equal(t, [2]int{10, 10}, [2]int{n, m})
	})
}

func TestLocalIdleIsBounded(t *testing.T) {
	keys, now := newIdleKeys(time.Minute), time.Now()
	for i := range maxIdleKeys + 1000 {
		require.False(t, keys.touch(fmt.Sprint(i), now))
	}
	require.Len(t, keys.last, maxIdleKeys)
	require.False(t, keys.touch("more", now.Add(time.Minute)), "an unknown key must not be reset")
	require.LessOrEqual(t, len(keys.last), maxIdleKeys, "idle keys must be dropped for new ones")
	require.Contains(t, keys.last, "more")
}

// TestFetchedOverrides checks that a fetched override ends at the same time as at weir, and that a removed override
// is dropped.
func TestFetchedOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := newLocalLimiter(DefaultLocalFraction)
		policy := PolicyInfo{Name: "api", Limits: []string{"FIXED 1h 20 FIRST"}, Overrides: []PolicyOverride{
			{Pattern: "soon", Limits: []string{"FIXED 1h 60 FIRST"}, Left: time.Minute},
			{Pattern: "now", Limits: []string{"FIXED 1h 60 FIRST"}, Left: 0},
			{Pattern: "good*", Limits: []string{"FIXED 1h 60 FIRST"}, Left: Never},
			{Pattern: "back", Left: Never},
		}}
		require.NoError(t, local.install(policy))
		time.Sleep(time.Millisecond)
		require.Equal(t, []int{30, 10, 30, 100}, []int{
			admits(local, "api", "soon"), admits(local, "api", "now"), admits(local, "api", "good1"),
			admits(local, "api", "back"),
		})
		policy.Overrides = policy.Overrides[:3]
		require.NoError(t, local.install(policy))
		require.Equal(t, 10, admits(local, "api", "back"))
		time.Sleep(2 * time.Hour) // the usage is reset too
		require.Equal(t, []int{10, 30}, []int{admits(local, "api", "soon"), admits(local, "api", "good1")})
	})
}
