package evloop

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEndlessSendersKeepNobodyWaiting checks that clients which send without a pause delay no other client, even if
// there are more of them than pollers.
func TestEndlessSendersKeepNobodyWaiting(t *testing.T) {
	r := newRig(t, func(c *Conn) func() bool {
		b := make([]byte, 16)
		answers := true
		return func() bool {
			for {
				n, err := c.CycleConn().Read(b)
				if err != nil {
					return err == ErrAgain
				}
				if b[0] == 'x' {
					answers = false
				}
				if answers {
					_, _ = c.CycleConn().Write(b[:n])
				}
			}
		}
	})
	senders := 2*runtime.GOMAXPROCS(0) + 1
	stop, ended := make(chan struct{}), make(chan struct{}, senders)
	flood := make([]byte, 64<<10)
	for i := range flood {
		flood[i] = 'x'
	}
	for range senders {
		nc := r.dial(t)
		go func() {
			defer func() { ended <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := nc.Write(flood); err != nil {
					return
				}
			}
		}()
	}
	other := r.dial(t)
	for range 50 {
		require.NoError(t, exchange(other, []byte("hello")))
	}
	close(stop)
	for range senders {
		<-ended
	}
}

// TestHelpersComeAndGo checks that a poller which is always busy gets a helper, and that the helper ends afterwards.
func TestHelpersComeAndGo(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor: nobody can help")
	}
	var helped atomic.Bool
	var r *rig
	r = newRig(t, func(c *Conn) func() bool {
		return echo(c, func() {
			for start := time.Now(); time.Since(start) < busySpan/4; {
				helped.CompareAndSwap(false, r.helpers.Load() > 0)
			}
		})
	})
	const clients = 20
	deadline := time.Now().Add(testWait)
	ended := make(chan error, clients)
	for range clients {
		nc := r.dial(t)
		go func() {
			for !helped.Load() && time.Now().Before(deadline) {
				if err := exchange(nc, []byte("hello")); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range clients {
		require.NoError(t, <-ended)
	}
	require.True(t, helped.Load(), "one poller worked alone")
	require.Eventually(t, func() bool { return r.helpers.Load() == 0 }, testWait, time.Millisecond)
}

// TestOverloaded checks that a poller which cannot keep up gets a helper soon, and that a poller which keeps up
// without a pause gets one later.
func TestOverloaded(t *testing.T) {
	few, full := &poller{n: 1}, &poller{n: eventsAtOnce}
	require.False(t, few.overloaded(busySpan))
	require.True(t, few.overloaded(busySpan+1))
	require.False(t, full.overloaded(behindSpan))
	require.True(t, full.overloaded(behindSpan+1))
	require.False(t, (&poller{n: eventsAtOnce - 1}).overloaded(behindSpan+1))
}
