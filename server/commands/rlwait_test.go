package commands

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// livingLimiter decides at a time that advances with the fake clock of package synctest.
type livingLimiter struct {
	*servertest.TableLimiter
	start time.Time
}

func (l *livingLimiter) Decide(ops []engine.Op, out []engine.Decision) error {
	l.Mu.Lock()
	l.Stamp.NowNs = servertest.TestNowNs + int64(time.Since(l.start))
	l.Mu.Unlock()
	return l.TableLimiter.Decide(ops, out)
}

// waitRoom is a server with waiting clients.
type waitRoom struct {
	*testServer
	t     *testing.T
	start time.Time
	done  chan answered
}

type answered struct {
	who, reply string
	after      time.Duration // since the start
}

// inWaitRoom runs a test in fake time.
func inWaitRoom(t *testing.T, test func(t *testing.T, r *waitRoom)) {
	synctest.Test(t, func(t *testing.T) {
		lim := &livingLimiter{servertest.NewTableLimiter(), time.Now()}
		srv, err := NewShared(silent(Config{EnableDebug: true}), lim)
		require.NoError(t, err)
		test(t, &waitRoom{&testServer{Shared: srv, lim: lim.TableLimiter}, t, lim.start,
			make(chan answered, 2*service.MaxWaiters)})
		assert.Zero(t, srv.Waits.Count.Load())
		assert.Empty(t, srv.Waits.Queues)
	})
}

// says lets a separate client send a command, and returns when that client waits or has its answer.
func (r *waitRoom) says(who, line string) *fakeClient {
	c := r.client(r.t)
	c.fake.gone = make(chan struct{})
	go func() {
		reply := c.say(line)
		if c.sess.Closing {
			reply = "gone"
		}
		c.sess.Close()
		r.done <- answered{who, reply, time.Since(r.start)}
	}()
	synctest.Wait()
	return c.fake
}

// expect takes the next answers, as "who after reply". Answers of one moment come in any order, because each comes from
// its own goroutine.
func (r *waitRoom) expect(want ...string) {
	r.t.Helper()
	var got []string
	for range want {
		a := <-r.done
		got = append(got, fmt.Sprintf("%s %v %s", a.who, a.after, a.reply))
	}
	require.ElementsMatch(r.t, want, got)
	synctest.Wait()
	require.Empty(r.t, r.done)
}

func (r *waitRoom) tries() int {
	r.lim.Mu.Lock()
	defer r.lim.Mu.Unlock()
	return r.lim.Calls
}

const oneASecond = "RL.WAIT RL.TOKENBUCKET k 1/s 1 TIMEOUT 10s"

func TestRLWaitIsFair(t *testing.T) {
	inWaitRoom(t, func(t *testing.T, r *waitRoom) {
		for _, who := range []string{"a", "b", "c", "d"} {
			r.says(who, oneASecond)
		}
		r.expect("a 0s 1 0 0 1000 1", "b 1s 1 0 0 1000 1", "c 2s 1 0 0 1000 1", "d 3s 1 0 0 1000 1")
		assert.LessOrEqual(t, r.tries(), 7, "a waiting request must not be tried more often than the server said")
	})
}

// TestRLWaitDoesNotOvertake checks that a later request waits behind an earlier one that needs more. A request that
// does not wait may pass.
func TestRLWaitDoesNotOvertake(t *testing.T) {
	inWaitRoom(t, func(t *testing.T, r *waitRoom) {
		r.says("empty", "RL.TOKENBUCKET k 1/s 5 COST 5")
		r.says("much", "RL.WAIT RL.TOKENBUCKET k 1/s 5 COST 3 TIMEOUT 10s")
		r.says("little", "RL.WAIT RL.TOKENBUCKET k 1/s 5 TIMEOUT 10s")
		r.says("elsewhere", "RL.WAIT RL.TOKENBUCKET other 1/s 5 TIMEOUT 10s")
		r.expect("empty 0s 1 0 0 5000 5", "elsewhere 0s 1 4 0 1000 5")
		time.Sleep(2500 * time.Millisecond)
		r.says("not waiting", "RL.TOKENBUCKET k 1/s 5")
		r.expect("not waiting 2.5s 1 1 0 3500 5", "much 4s 1 0 0 5000 5", "little 5s 1 0 0 5000 5")
	})
}

func TestRLWaitEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		send []string
		want []string
	}{
		{"at the deadline, with the numbers of then",
			[]string{"RL.TOKENBUCKET k 1/s 5 COST 5", "RL.WAIT RL.TOKENBUCKET k 1/s 5 COST 4 TIMEOUT 1500ms"},
			[]string{"0 0s 1 0 0 5000 5", "1 1.5s 0 1 2500 3500 5"}},
		{"at the deadline, at the last moment",
			[]string{"RL.TOKENBUCKET k 1/s 5 COST 5", "RL.WAIT RL.TOKENBUCKET k 1/s 5 COST 4 TIMEOUT 4s"},
			[]string{"0 0s 1 0 0 5000 5", "1 4s 1 0 0 5000 5"}},
		{"at the deadline, behind others", []string{"RL.TOKENBUCKET k 1/s 5 COST 5",
			"RL.WAIT RL.TOKENBUCKET k 1/s 5 COST 5 TIMEOUT 9s", "RL.WAIT RL.TOKENBUCKET k 1/s 5 TIMEOUT 2s"},
			[]string{"0 0s 1 0 0 5000 5", "2 2s 0 2 0 3000 5", "1 5s 1 0 0 5000 5"}},
		{"at once without time",
			[]string{"RL.WAIT RL.TOKENBUCKET k 1/s 1 TIMEOUT 0", "RL.WAIT RL.TOKENBUCKET k 1/s 1 TIMEOUT 0"},
			[]string{"0 0s 1 0 0 1000 1", "1 0s 0 0 1000 1000 1"}},
		{"when it never fits", []string{"RL.WAIT RL.TOKENBUCKET k 1/s 1 COST 2 TIMEOUT 1h"},
			[]string{"0 0s 0 1 -1 0 1"}},
		{"when its turn shows that it never fits",
			[]string{"RL.TOKENBUCKET k 1/s 1", oneASecond, "RL.WAIT RL.TOKENBUCKET k 1/s 1 COST 2 TIMEOUT 1h"},
			[]string{"0 0s 1 0 0 1000 1", "1 1s 1 0 0 1000 1", "2 1s 0 0 -1 1000 1"}},
		{"with part of it", []string{"RL.TOKENBUCKET k 1/s 5 COST 5",
			"RL.WAIT RL.TOKENBUCKET k 1/s 5 COST 4 PARTIAL TIMEOUT 9s"},
			[]string{"0 0s 1 0 0 5000 5", "1 1s 1 0 0 5000 5"}},
		{"as other dialects answer", []string{"CL.THROTTLE k 0 1 1", "RL.WAIT CL.THROTTLE k 0 1 1 TIMEOUT 3s",
			"RL.WAIT CL.THROTTLE k 0 1 1 TIMEOUT 900ms"},
			[]string{"0 0s 0 1 0 -1 1", "2 900ms 1 1 0 1 1", "1 1s 0 1 0 -1 1"}},
		{"with an error", []string{"RL.FIXED k FOREVER 5", "RL.WAIT RL.TOKENBUCKET k 1/s 1 TIMEOUT 3s",
			"RL.WAIT RL.CHECK none k TIMEOUT 3s"},
			[]string{"0 0s 1 4 0 -1 5", "1 0s -" + string(service.ErrWrongType),
				"2 0s -" + service.NoPolicy([]byte("none")).Error()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWaitRoom(t, func(_ *testing.T, r *waitRoom) {
				for i, line := range test.send {
					r.says(fmt.Sprint(i), line)
				}
				r.expect(test.want...)
			})
		})
	}
}

func TestRLWaitForgetsWhoHasGone(t *testing.T) {
	inWaitRoom(t, func(t *testing.T, r *waitRoom) {
		r.says("taken", "RL.TOKENBUCKET k 1/s 1")
		front, middle := r.says("front", oneASecond), r.says("middle", oneASecond)
		r.says("last", oneASecond)
		time.Sleep(time.Second / 2)
		close(middle.gone)
		synctest.Wait()
		close(front.gone)
		r.expect("taken 0s 1 0 0 1000 1", "middle 500ms gone", "front 500ms gone", "last 1s 1 0 0 1000 1")
	})
}

// TestRLWaitTakesNothingForWhoHasGone checks that a request takes nothing if its client closes the connection at the
// moment its turn comes.
func TestRLWaitTakesNothingForWhoHasGone(t *testing.T) {
	srv := newTestServer(t, Config{})
	gone := make(chan struct{})
	close(gone)
	for range 64 {
		s := srv.client(t).sess
		r, err := newHeldRequest(s, [][]byte{[]byte("RL.WAIT"), []byte("RL.FIXED"), []byte("k"), []byte("1m"),
			[]byte("1"), []byte("TIMEOUT"), []byte("1s")})
		require.NoError(t, err)
		r.Waiter, err = srv.Waits.Join(r.queue)
		require.NoError(t, err)
		r.wait(gone)
		srv.Waits.Leave(r.Waiter)
		require.True(t, s.Closing)
	}
	assert.Zero(t, srv.lim.Calls)
}

func TestRLWaitWhenTheServerStops(t *testing.T) {
	inWaitRoom(t, func(t *testing.T, r *waitRoom) {
		r.says("taken", "RL.TOKENBUCKET k 1/s 1")
		r.says("a", oneASecond)
		r.says("b", oneASecond)
		assert.Contains(t, r.client(t).say("INFO clients"), "blocked_clients:2")
		time.Sleep(time.Second / 2)
		stopServing(r.Shared)
		const stopping = "-TRYAGAIN not applied, send it again: the server is stopping"
		first, second, third := <-r.done, <-r.done, <-r.done
		assert.Equal(t, "taken", first.who)
		for _, a := range []answered{second, third} {
			assert.Equal(t, stopping, a.reply)
			assert.Equal(t, time.Second/2, a.after)
		}
	})
}

// TestRLWaitNoticesWhatIsGivenBack checks that a refund through this node wakes the waiting request at once.
func TestRLWaitNoticesWhatIsGivenBack(t *testing.T) {
	for _, test := range []struct{ name, before, wait, give, want string }{
		{"a lease", "RL.ACQUIRE k 1 30s HOLDER x", "RL.WAIT RL.ACQUIRE k 1 30s HOLDER y TIMEOUT 1m", "RL.RELEASE k x",
			"1 0 0 30000 1 y"},
		{"units", "RL.TOKENBUCKET k 1/m 5 COST 5", "RL.WAIT RL.TOKENBUCKET k 1/m 5 TIMEOUT 1m", "RL.REFUND k 1",
			"1 0 0 300000 5"},
		{"a limiter", "RL.FIXED k 1m 1 FIRST", "RL.WAIT RL.FIXED k 1m 1 FIRST TIMEOUT 10s", "DEL k", "1 0 0 60000 1"},
		{"a block", "RL.BLOCK k 1m", "RL.WAIT RL.FIXED k 1m 1 FIRST TIMEOUT 10s", "RL.UNBLOCK k", "1 0 0 60000 1"},
		{"a policy's limiter", "RL.CHECK p k", "RL.WAIT RL.CHECK p k TIMEOUT 10s", "RL.RESET policy|p|0|k",
			"1 0 0 60000 1 p"},
		{"in a transaction", "RL.FIXED k 1m 1 FIRST", "RL.WAIT RL.FIXED k 1m 1 FIRST TIMEOUT 10s",
			"MULTI;DEL k;EXEC", "1 0 0 60000 1"},
		{"time", "RL.TOKENBUCKET k 1/m 1", "RL.WAIT RL.TOKENBUCKET k 1/m 1 TIMEOUT 1m", "DEBUG CLOCK ADVANCE 60000",
			"1 0 0 60000 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newTestServer(t, Config{EnableDebug: true}) // its limiter time stands still
				c := srv.client(t)
				c.say("RL.POLICY SET p LIMIT FIXED 1m 1 FIRST")
				require.NotContains(t, c.say(test.before), "ERR")
				reply := make(chan string)
				start := time.Now()
				go func() { reply <- srv.client(t).say(test.wait) }()
				synctest.Wait()
				require.EqualValues(t, 1, srv.Waits.Count.Load())
				time.Sleep(time.Second)
				for _, line := range strings.Split(test.give, ";") {
					c.say(line)
				}
				got := <-reply
				assert.Equal(t, test.want, got)
				assert.Equal(t, time.Second, time.Since(start))
			})
		})
	}
}

func TestRLWaitRefuses(t *testing.T) {
	c := defaultClient(t)
	c.say("MULTI")
	assert.Equal(t, "-"+string(errNotInMulti), c.say(oneASecond))
	c.say("DISCARD")
	for send, want := range map[string]string{
		"RL.WAIT": "-ERR wrong number of arguments for 'rl.wait' command: RL.WAIT command " +
			"argument [argument ...] TIMEOUT duration, like RL.WAIT RL.TOKENBUCKET user:42 10/s 1 TIMEOUT 1s",
		"RL.WAIT RL.TOKENBUCKET k 1/s 1": "-ERR RL.WAIT must end with TIMEOUT and a " +
			"duration, like TIMEOUT 2s",
		"RL.WAIT RL.TOKENBUCKET k 1/s 1 TIMEOUT soon": "-ERR TIMEOUT " + durations + ", not 'soon'",
		"RL.WAIT RL.TOKENBUCKET k 1/s 1 TIMEOUT 61m":  "-ERR TIMEOUT must be at most 1h, not '61m'",
		"RL.WAIT RL.TOKENBUCKET k fast 1 TIMEOUT 1s":  c.say("RL.TOKENBUCKET k fast 1"),
		"RL.WAIT RL.TOKENBUCKET k TIMEOUT 1s": "-ERR wrong number of arguments for " +
			"'rl.tokenbucket' command: RL.TOKENBUCKET key rate burst [COST n] [PARTIAL] [MAXWAIT duration] [FROM " +
			"address] [ID token], like RL.TOKENBUCKET user:42 10/s 100",
		"RL.WAIT RL.RESET k TIMEOUT 1s": "-ERR command must be a decision, like " +
			"RL.TOKENBUCKET, not 'RL.RESET'",
		"RL.WAIT INCREX k TIMEOUT 1s": "-ERR command must be a decision, like " +
			"RL.TOKENBUCKET, not 'INCREX'",
		"RL.WAIT RL.WAIT RL.FIXED k 1m 1 TIMEOUT 1s TIMEOUT 1s": "-ERR command must be a decision, like " +
			"RL.TOKENBUCKET, not 'RL.WAIT'",
		"RL.WAIT PING now then TIMEOUT 1s": "-ERR command must be a decision, like " +
			"RL.TOKENBUCKET, not 'PING'",
		"RL.WAIT RL.TOKENBUCKET k 1/s 1 ID x TIMEOUT 1s":          "-" + string(errWaitWithID),
		"RL.WAIT RL.STRIKE k 15m 2 2s TIMEOUT 1s":                 "-" + string(errWaitToStrike),
		"RL.WAIT RL.STRIKE k 15m 2 2s COST 0 TIMEOUT 1s":          "1 2 0 0 2",
		"RL.WAIT RL.TOKENBUCKET policy|p|0|k 1/s 1 TIMEOUT 1s":    "-" + string(arg.ErrReservedKey),
		"RL.WAIT RL.TOKENBUCKET untouched 1/s 1 COST 0 TIMEOUT 0": "1 1 0 0 1",
	} {
		assert.Equal(t, want, c.say(send), send)
	}
	assert.Zero(t, c.sess.srv.Waits.Count.Load())
}

// TestRLWaitIsBounded sends ten thousand requests for one key. A thousand wait, and the others are refused at once.
// When the time is up, no request is tried again. The next ten thousand fill the server.
func TestRLWaitIsBounded(t *testing.T) {
	inWaitRoom(t, func(t *testing.T, r *waitRoom) {
		r.says("taken", "RL.FIXED k 1h 1 FIRST")
		<-r.done
		for i := range service.MaxWaiters {
			r.says(fmt.Sprint(i), "RL.WAIT RL.FIXED k 1h 1 FIRST TIMEOUT 1m")
		}
		require.Len(t, r.done, service.MaxWaiters-service.MaxWaitersOfKey)
		for range service.MaxWaiters - service.MaxWaitersOfKey {
			a := <-r.done
			require.Equal(t, "-OVERLOADED too many commands are waiting, nothing was counted: RL.WAIT holds 1000 "+
				"requests for this key already", a.reply)
			require.Zero(t, a.after)
		}
		tries := r.tries()
		for range service.MaxWaitersOfKey {
			require.Equal(t, "0 0 3540000 3540000 1", (<-r.done).reply)
		}
		require.LessOrEqual(t, r.tries()-tries, service.MaxWaitersOfKey, "each waiting request may be tried once")

		for i := range service.MaxWaiters + 1 {
			r.says(fmt.Sprint(i), fmt.Sprintf("RL.WAIT RL.FIXED k%d 1h 1 FIRST COST 1 TIMEOUT 1m", i%11))
		}
		for range 11 {
			require.Contains(t, (<-r.done).reply, "1 0 0", "the first request of each key must be admitted")
		}
		for i := range 11 {
			r.says("more", fmt.Sprintf("RL.WAIT RL.FIXED k%d 1h 1 FIRST TIMEOUT 1m", i))
		}
		a := <-r.done
		require.Equal(t, "-OVERLOADED too many commands are waiting, nothing was counted: RL.WAIT holds 10000 "+
			"requests already", a.reply)
		for range service.MaxWaiters {
			require.Contains(t, (<-r.done).reply, "0 0 3540000")
		}
	})
}

func TestRLWaitInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := servertest.NewFakeCluster()
		c, node := clusterClient(t, f, "b", Config{})
		other, _ := clusterClient(t, f, "a", Config{})
		c.say("RL.TOKENBUCKET k 1/m 1")
		time.AfterFunc(59*time.Second, func() { f.Advance(time.Minute) })
		decided := node.Decided.Load()
		assert.Equal(t, "1 0 0 60000 1", c.say("RL.WAIT RL.TOKENBUCKET k 1/m 1 TIMEOUT 90s"),
			"a follower must queue the request and let the leader decide")
		assert.LessOrEqual(t, node.Decided.Load()-decided, int64(3))

		time.AfterFunc(time.Second, func() { f.Lead("") })
		assert.Contains(t, c.say("RL.WAIT RL.TOKENBUCKET k 1/m 1 TIMEOUT 90s"), "-CLUSTERDOWN",
			"the error must come when the request is tried again")

		f.Lead("a")
		moved, _ := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved})
		assert.Equal(t, "-MOVED 12182 10.0.0.1:6380", moved.say("RL.WAIT RL.TOKENBUCKET foo 1/m 1 TIMEOUT 90s"))
		assert.Equal(t, "1 0 0 60000 1", other.say("RL.WAIT RL.TOKENBUCKET foo 1/m 1 TIMEOUT 90s"))
	})
}
