package client_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

func TestLeaseHandsOutWhatWasTaken(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.FixedFirst(time.Hour, 10)
	l, err := c.Lease(rule, "hot", client.LeaseOptions{Batch: 4, MaxAge: time.Hour})
	require.NoError(t, err)
	for i := range 10 {
		d, err := l.Take(t.Context())
		require.NoError(t, err)
		require.True(t, d.Allowed, i)
		require.EqualValues(t, 1, d.Granted)
		require.EqualValues(t, i/4+1, s.Decided.Load(), "a batch must take one round trip")
	}
	for range 3 {
		d, err := l.Take(t.Context())
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.LessOrEqual(t, d.RetryAfter, time.Hour)
	}
	require.EqualValues(t, 4, s.Decided.Load(), "a denial must be remembered")
	require.NoError(t, l.Close())
	_, err = c.Lease(client.Policy("p"), "hot", client.LeaseOptions{Batch: 4})
	require.ErrorIs(t, err, client.ErrBadRequest)
	_, err = c.Lease(rule, "hot", client.LeaseOptions{})
	require.ErrorIs(t, err, client.ErrBadRequest)
}

func TestLeaseGivesBackWhatIsUnused(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	lease := func(key string, r *client.Rule, age time.Duration) *client.Lease {
		l, err := c.Lease(r, key, client.LeaseOptions{Batch: 8, MaxAge: age})
		require.NoError(t, err)
		d, err := l.Take(t.Context())
		require.NoError(t, err)
		require.True(t, d.Allowed)
		return l
	}
	l := lease("closed", client.FixedFirst(time.Hour, 10), time.Hour)
	require.EqualValues(t, 8, used(t, c, "closed"))
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "a second Close must do nothing")
	require.EqualValues(t, 1, used(t, c, "closed"))
	_, err := l.Take(t.Context())
	require.ErrorIs(t, err, client.ErrClosed)
	require.EqualValues(t, 1, used(t, c, "closed"))

	l = lease("aged", client.FixedFirst(time.Hour, 10), time.Millisecond)
	require.Eventually(t, func() bool { return used(t, c, "aged") == 1 }, weirtest.Wait, time.Millisecond)
	require.NoError(t, l.Close())

	// The window may end before the refund arrives. The refund would then return units of other clients.
	l = lease("late", client.FixedFirst(time.Second, 10), time.Hour)
	require.NoError(t, l.Close())
	require.EqualValues(t, 8, used(t, c, "late"))
}

// TestLeasesNeverExceedTheLimit checks that fifty processes never hand out more than the limit. Ten of them are
// killed (SIGKILL) with units in hand.
func TestLeasesNeverExceedTheLimit(t *testing.T) {
	const limit, processes, killEvery = 20_000, 50, 5
	s := weirtest.StartRealTime(t)
	var admitted, killed atomic.Int64
	var running sync.WaitGroup
	for p := range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLeaseProcess$", "-test.count=1")
		cmd.Env = append(os.Environ(), leaseProcess+"="+s.Addr+"/"+strconv.Itoa(limit))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		running.Go(func() {
			units := 0
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if lines.Text() == unitLine {
					units++
				}
				if p%killEvery == 0 && units == 20 {
					_ = cmd.Process.Kill()
				}
			}
			if cmd.Wait() != nil {
				killed.Add(1)
			}
			admitted.Add(int64(units))
		})
	}
	running.Wait()
	require.LessOrEqual(t, admitted.Load(), int64(limit))
	require.Greater(t, admitted.Load(), int64(limit)/2, "most of the limit must be handed out")
	require.NotZero(t, killed.Load())
	taken := used(t, newClient(t, s, client.Options{}), "hot")
	require.LessOrEqual(t, admitted.Load(), taken, "units must be taken before they are handed out")
	t.Logf("%d of %d units handed out by %d processes, %d killed; %d lost with them", admitted.Load(), limit, processes,
		killed.Load(), taken-admitted.Load())
}

const (
	leaseProcess = "WEIRTEST_LEASE_PROCESS" // address and limit, for a process of the test above
	unitLine     = "unit"
)

// TestLeaseProcess is one process of TestLeasesNeverExceedTheLimit. It writes a line for each unit that it gets.
func TestLeaseProcess(t *testing.T) {
	addr, text, asked := strings.Cut(os.Getenv(leaseProcess), "/")
	if !asked {
		t.Skip("a part of TestLeasesNeverExceedTheLimit")
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	c, err := client.New(rdb, client.Options{WhenDown: client.Closed, Timeout: patient})
	require.NoError(t, err)
	l, err := c.Lease(client.Quota(client.Forever, "", limit), "hot",
		client.LeaseOptions{Batch: 30, MaxAge: 5 * time.Millisecond})
	require.NoError(t, err)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				d, err := l.Take(t.Context())
				if err != nil || !d.Allowed {
					return
				}
				_, _ = os.Stdout.WriteString(unitLine + "\n")
				time.Sleep(rand.N(100 * time.Microsecond)) // some units expire in the meantime
			}
		})
	}
	workers.Wait()
	require.NoError(t, l.Close())
	require.NoError(t, c.Close())
}

// TestLeaseTakesOnce checks that the caller which makes the round trip gets a unit of it, even if the others are used
// up at once.
func TestLeaseTakesOnce(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	l, err := c.Lease(client.FixedFirst(time.Hour, 10), "hot", client.LeaseOptions{Batch: 1, MaxAge: time.Nanosecond})
	require.NoError(t, err)
	for i := range 10 {
		d, err := l.Take(t.Context())
		require.NoError(t, err)
		require.True(t, d.Allowed, i)
	}
	require.EqualValues(t, 10, s.Decided.Load())
	require.NoError(t, l.Close())
}

// TestLeaseOutlastsAnOutage checks that a denial by the fallback ends soon after the outage, whatever its retry time
// is.
func TestLeaseOutlastsAnOutage(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local})
	l, err := c.Lease(client.FixedFirst(time.Hour, 10), "hot", client.LeaseOptions{Batch: 10, MaxAge: time.Hour})
	require.NoError(t, err)
	s.Stop()
	var d client.Decision
	for range 6 { // one more than the fallback's half of the limit
		d, err = l.Take(t.Context())
		require.NoError(t, err)
	}
	require.False(t, d.Allowed)
	require.Greater(t, d.RetryAfter, time.Minute)
	for !c.Down() {
		decide(t, c, client.Request{Rule: probe, Key: "k"})
	}
	s.Start()
	require.Eventually(t, func() bool {
		d, err = l.Take(t.Context())
		return err == nil && d.Allowed && d.Source == client.FromServer
	}, weirtest.Wait, time.Millisecond)
	require.NoError(t, l.Close())
}
