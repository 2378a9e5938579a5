package systems

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirproc"
)

const (
	// lockedAt is the number of failures that locks an account in the marketplace's table.
	lockedAt = 11
	lockFor  = 15 * time.Minute
	// attackers try passwords at the same time.
	attackers = 200
)

// lockoutSteps are the marketplace's table of failed logins.
var lockoutSteps = []client.Step{
	{Threshold: 4, Delay: 2 * time.Second}, {Threshold: 6, Delay: 5 * time.Second},
	{Threshold: lockedAt, Penalty: lockFor},
}

// loginPage checks passwords as the marketplace does, and counts the checked passwords.
type loginPage struct {
	weir  []*client.Client // of each node
	begin func(user string) client.Request
	tried sync.Map // of each user, *atomic.Int64
}

// newLoginPage returns a page that uses the given nodes.
func newLoginPage(t *testing.T, begin func(string) client.Request, nodes ...*weirproc.Server) *loginPage {
	page := &loginPage{begin: begin}
	for _, node := range nodes {
		c, err := client.New(redis.NewClient(&redis.Options{Addr: node.Addr, ContextTimeoutEnabled: true}),
			client.Options{
				WhenDown: client.Closed, Timeout: weirproc.Wait, DenialKeys: -1,
				Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		page.weir = append(page.weir, c)
	}
	return page
}

// login reports whether the user is logged in, and whether weir answered. It does not delay the response, because
// attackers do not wait for it.
func (p *loginPage) login(ctx context.Context, user string, right bool) (in, answered bool,
	d client.Decision, err error) {
	a, d, err := p.weir[rand.N(len(p.weir))].Begin(ctx, p.begin(user))
	if err != nil || !d.Allowed {
		return false, err == nil && d.Source == client.FromServer, d, err
	}
	tried, _ := p.tried.LoadOrStore(user, new(atomic.Int64))
	tried.(*atomic.Int64).Add(1)
	time.Sleep(rand.N(3 * time.Millisecond)) // what it takes to check a password
	if !right {
		return false, true, d, nil
	}
	return true, true, d, a.Succeed(ctx)
}

// loginAnswered logs in with the right password, and repeats that until weir answers. For up to a second after a node
// has come back, the node's client answers without it.
func (p *loginPage) loginAnswered(t *testing.T, user string) (in bool, d client.Decision) {
	t.Helper()
	require.Eventually(t, func() (answered bool) {
		var err error
		in, answered, d, err = p.login(t.Context(), user, true)
		return err == nil && answered
	}, weirproc.Wait, 20*time.Millisecond, "weir does not answer")
	return in, d
}

// triedOf returns the number of checked passwords of a user.
func (p *loginPage) triedOf(user string) int64 {
	tried, _ := p.tried.LoadOrStore(user, new(atomic.Int64))
	return tried.(*atomic.Int64).Load()
}

// attack tries passwords for the users in turn, from many threads. Each thread ends after a denial for every user.
// attack calls before ahead of each try.
func (p *loginPage) attack(t *testing.T, users []string, before func()) {
	var threads sync.WaitGroup
	start := make(chan struct{})
	for thread := range attackers {
		threads.Go(func() {
			<-start
			for i := range users {
				p.guess(t, users[(thread+i)%len(users)], before)
			}
		})
	}
	close(start)
	threads.Wait()
}

// guess tries passwords until weir denies one.
func (p *loginPage) guess(t *testing.T, user string, before func()) {
	for deadline := time.Now().Add(weirproc.Wait); time.Now().Before(deadline); {
		before()
		_, answered, d, err := p.login(t.Context(), user, false)
		switch {
		case err != nil || !answered: // no leader, or this node is down: try another
			time.Sleep(rand.N(20 * time.Millisecond))
		case !d.Allowed:
			return
		}
	}
	t.Errorf("%s was not locked", user)
}

// both returns the page with its own rule and with a policy.
func both(t *testing.T, weir *client.Client) map[string]func(string) client.Request {
	rule := client.Attempts(lockFor, lockoutSteps...)
	_, err := weir.SetPolicy(t.Context(), "lockout", client.PolicyTerms{Limits: []*client.Rule{rule}})
	require.NoError(t, err)
	policy := client.Policy("lockout")
	return map[string]func(string) client.Request{
		"rule":   func(user string) client.Request { return client.Request{Rule: rule, Key: "rl:auth:fail:" + user} },
		"policy": func(user string) client.Request { return client.Request{Rule: policy, Key: user} },
	}
}

// TestLoginAttack checks that at most eleven guesses for an account are checked before it is locked, with any number
// of concurrent attackers.
func TestLoginAttack(t *testing.T) {
	s := weirproc.Start(t)
	for name, begin := range both(t, newLoginPage(t, nil, s).weir[0]) {
		for timing, before := range map[string]func(){
			"at once": func() {}, "spread": func() { time.Sleep(rand.N(30 * time.Millisecond)) },
		} {
			t.Run(name+" "+timing, func(t *testing.T) {
				page, user := newLoginPage(t, begin, s), name+timing
				page.attack(t, []string{user}, before)
				require.EqualValues(t, lockedAt, page.triedOf(user))
				_, _, d, err := page.login(t.Context(), user, true)
				require.NoError(t, err)
				require.False(t, d.Allowed, "the right password as well")
				require.Greater(t, d.RetryAfter, lockFor-time.Minute)
			})
		}
	}
}

// TestHonestLogins checks that a user who mistypes twice is never delayed or locked, also during an attack on others.
func TestHonestLogins(t *testing.T) {
	s := weirproc.Start(t)
	for name, begin := range both(t, newLoginPage(t, nil, s).weir[0]) {
		t.Run(name, func(t *testing.T) {
			page := newLoginPage(t, begin, s)
			var honest sync.WaitGroup
			for i := range 20 {
				honest.Go(func() {
					for range 10 {
						for _, right := range []bool{false, false, true} {
							in, _, d, err := page.login(t.Context(), fmt.Sprint(name, " honest ", i), right)
							if err != nil || in != right || !d.Allowed || d.RetryAfter != 0 {
								t.Errorf("user %d: in %v, %+v, %v", i, in, d, err)
							}
						}
					}
				})
			}
			page.attack(t, []string{name + " victim"}, func() {})
			honest.Wait()
		})
	}
}

// TestLoginAttackOnACluster repeats the attack while the leader is killed. No node may lose a counted attempt.
func TestLoginAttackOnACluster(t *testing.T) {
	c := weirproc.StartCluster(t)
	requests := both(t, newLoginPage(t, nil, c.Leader()).weir[0])
	for _, name := range []string{"policy", "rule"} {
		page := newLoginPage(t, requests[name], c.Nodes[:]...)
		var users []string
		for i := range 20 {
			users = append(users, fmt.Sprint(name, i))
		}
		var tries atomic.Int64
		half, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			page.attack(t, users, func() {
				if tries.Add(1) == lockedAt*int64(len(users))/2 {
					close(half)
				}
			})
		}()
		<-half
		killed := c.KillLeader()
		<-over
		for _, user := range users {
			require.LessOrEqual(t, page.triedOf(user), int64(lockedAt), user)
			require.Positive(t, page.triedOf(user), user)
		}
		killed.Start()
		c.Leader()
		page.attack(t, users, func() {})
		for _, user := range users {
			require.LessOrEqual(t, page.triedOf(user), int64(lockedAt), "%s, with the node that came back", user)
		}
		in, d := page.loginAnswered(t, name+" honest")
		require.True(t, in && d.Allowed)
	}
}

// TestLockoutsAreTold checks that a subscriber on each node gets one message for each account that is locked through
// that node. The message contains the account and the duration.
func TestLockoutsAreTold(t *testing.T) {
	c := weirproc.StartCluster(t)
	requests := both(t, newLoginPage(t, nil, c.Leader()).weir[0])
	for i, node := range c.Nodes {
		user := fmt.Sprint("user", i)
		bot := node.Redis().PSubscribe(t.Context(), "weir:lockout:*")
		defer bot.Close()
		_, err := bot.Receive(t.Context()) // the subscription
		require.NoError(t, err)
		for name, told := range map[string]redis.Message{
			"policy": {Channel: "weir:lockout:policy:lockout", Payload: `{"policy":"lockout","key":"` + user +
				`","seconds":900}`},
			"rule": {Channel: "weir:lockout:strike", Payload: `{"key":"rl:auth:fail:` + user + `","seconds":900}`},
		} {
			newLoginPage(t, requests[name], node).attack(t, []string{user}, func() {})
			got, err := bot.ReceiveTimeout(t.Context(), weirproc.Wait)
			require.NoError(t, err)
			require.Equal(t, told.Channel, got.(*redis.Message).Channel)
			require.Equal(t, told.Payload, got.(*redis.Message).Payload)
		}
		require.NoError(t, bot.Ping(t.Context(), "nothing else"))
		got, err := bot.ReceiveTimeout(t.Context(), weirproc.Wait)
		require.NoError(t, err)
		require.IsType(t, &redis.Pong{}, got)
	}
}
