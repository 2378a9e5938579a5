package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
	"github.com/weir-project/weir/server/timezone"
)

// TestExamples runs the examples of the reference, so that users read the answers of the server.
func TestExamples(t *testing.T) {
	each(newCommandTable(families()...).all, func(cmd *command) {
		if len(cmd.shown) == 0 {
			return
		}
		t.Run(cmd.Full, func(t *testing.T) {
			c := defaultClient(t)
			for _, e := range cmd.shown {
				matchReply(t, e.answer, c.say(e.send), e.send)
			}
		})
	})
}

// matchReply compares word by word; a star in want stands for any word.
func matchReply(t *testing.T, want, got, sent string) {
	t.Helper()
	w, g := strings.Split(want, " "), strings.Split(got, " ")
	require.Equal(t, len(w), len(g), "%s: want %q, got %q", sent, want, got)
	for i := range w {
		if w[i] != "*" {
			assert.Equal(t, w[i], g[i], "%s: want %q, got %q", sent, want, got)
		}
	}
}

func TestDecisionOptions(t *testing.T) {
	for _, test := range []struct{ send, want string }{
		{"rl.tokenbucket k 10/s 10 cost 3", "1 7 0 300 10"},
		{"RL.TOKENBUCKET k 10/s 10 id t COST 0", "1 10 0 0 10"},
		{"RL.TOKENBUCKET k 10/s 10 COST 11", "0 10 -1 0 10"},
		{"RL.TOKENBUCKET k 10/s 10 COST 11 PARTIAL", "10 0 0 1000 10"},
		{"RL.TOKENBUCKET k 10/s 10 MAXWAIT 1s COST 10", "1 0 0 1000 10"},
		{"RL.LEAKYBUCKET k 10/s 0", "1 0 0 100 0"},
		{"RL.FIXED k 1d 5 COST 2", "1 3 0 43200000 5"},
		{"RL.FIXED k DAY 5", "1 4 0 43200000 5"},
		{"RL.FIXED k day 5 tz Europe/Berlin", "1 4 0 39600000 5"},
		{"RL.FIXED k WEEK 5", "1 4 0 129600000 5"},
		{"RL.FIXED k MONTH 5", "1 4 0 820800000 5"},
		{"RL.FIXED k YEAR 5", "1 4 0 3499200000 5"},
		{"RL.FIXED k FOREVER 5", "1 4 0 -1 5"},
		{"RL.FIXED k 1h 5 FIRST COST 2 PARTIAL", "2 3 0 3600000 5"},
		{"RL.SLIDING k 500ms 5 COST 5", "1 0 0 500 5"},
		{"RL.SLIDINGCOUNTER k 60 5 COST 6", "0 5 -1 0 5"},
		{"RL.ACQUIRE k 3 0 HOLDER me COST 2", "1 1 0 -1 3 me"},
		{"RL.ACQUIRE k 3 1m ID token", "1 2 0 60000 3 token"},
		{"RL.STRIKE k 1h 3 1m COST 0", "1 3 0 0 3"},
	} {
		assert.Equal(t, test.want, defaultClient(t).say(test.send), test.send)
	}
}

func TestAcquireMakesUpAHolder(t *testing.T) {
	c := defaultClient(t)
	first := c.value("RL.ACQUIRE k 3 1m").items[5].text
	second := c.value("RL.ACQUIRE k 3 1m").items[5].text
	assert.Len(t, first, 32)
	assert.NotEqual(t, first, second)
	assert.Equal(t, "1", c.say("RL.RELEASE k "+first))
	assert.Equal(t, "0", c.say("RL.RELEASE k "+first))
	assert.Equal(t, "1", c.say("RL.RENEW k "+second+" 5m"))
	assert.Equal(t, "300000", c.say("PTTL k"))
}

func TestSettling(t *testing.T) {
	c := defaultClient(t)
	assert.Equal(t, "-1", c.say("RL.REFUND k 1"), "nothing was taken, so nothing can be refunded")
	c.say("RL.FIXED a FOREVER 3")
	c.say("RL.FIXED b FOREVER 3")
	c.say("RL.FIXED d FOREVER 3")
	assert.Equal(t, "2", c.say("RL.RESET a b c ID tok"))
	assert.Equal(t, "1", c.say("UNLINK d e"))
	assert.Equal(t, "0", c.say("DEL d ID tok"), "DEL must take every argument for a key")

	assert.Equal(t, "OK", c.say(`RL.BLOCK k 1h REASON "bad manners" ID tok`))
	assert.Equal(t, "0 0 3600000 3600000 10", c.say("RL.TOKENBUCKET k 1/s 10"))
	assert.Equal(t, "bad manners", c.value("RL.INSPECT k").get("reason").text)
	assert.Equal(t, "1", c.say("RL.UNBLOCK k"))
	assert.Equal(t, "0", c.say("RL.UNBLOCK k"))
	assert.Equal(t, "OK", c.say("RL.BLOCK k forever"))
	assert.Equal(t, "0 0 -1 -1 10", c.say("RL.TOKENBUCKET k 1/s 10"))
}

// TestABlockOnlyLengthens checks GT: the later end of the blocks counts, in whatever order they come.
func TestABlockOnlyLengthens(t *testing.T) {
	c := defaultClient(t)
	for _, s := range [][2]string{{"5s REASON first GT", "5000"}, {"2s REASON second GT", "5000"},
		{"9s REASON third GT", "9000"}, {"1s REASON fourth", "1000"}, {"FOREVER GT", "-1"}, {"1h GT", "-1"}} {
		require.Equal(t, "OK", c.say("RL.BLOCK k "+s[0]))
		require.Equal(t, "0 0 "+s[1]+" "+s[1]+" 10", c.say("RL.TOKENBUCKET k 1/s 10"), s[0])
	}
	c.say("RL.BLOCK other 5s REASON first GT")
	c.say("RL.BLOCK other 2s REASON second GT")
	require.Equal(t, "first", c.value("RL.INSPECT other").get("reason").text)
	require.Equal(t, "OK", c.say("RL.BLOCK other 1h EVERYWHERE"))
	require.Equal(t, "OK", c.say("RL.BLOCK other 9s GT"))
	require.Equal(t, "0 0 3600000 3600000 10", c.say("RL.TOKENBUCKET other 1/s 10"), "the block everywhere stays")
}

func TestStatusesBecomeErrors(t *testing.T) {
	c := defaultClient(t)
	c.say("RL.TOKENBUCKET k 1/s 10")
	assert.Equal(t, "-"+string(service.ErrWrongType), c.say("RL.FIXED k 1m 10"))
	assert.Equal(t, "-"+string(service.ErrWrongType), c.say("RL.EXPLAIN RL.FIXED k 1m 10"))
	c.say("RL.ACQUIRE s 3 1m HOLDER me")
	assert.Equal(t, "-"+string(service.ErrNotRefundable), c.say("RL.REFUND s 1"))
	c.say("INCREX n BYINT -9223372036854775808")
	assert.Equal(t, "-"+string(service.ErrOverflow), c.say("INCREX n LBOUND 9223372036854775807 SATURATE"))
}

func TestLimiterErrorsReachEveryCommandOfTheBatch(t *testing.T) {
	for _, test := range []struct {
		err  error
		word string
	}{{limiter.ErrTryAgain, "TRYAGAIN"}, {limiter.ErrOverloaded, "OVERLOADED"}, {limiter.ErrUnknownOutcome, "UNKNOWN"},
		{limiter.ErrNoDisk, "ERR"}, {assert.AnError, "UNKNOWN"}} {
		c := defaultClient(t)
		lim := c.sess.srv.Limiter.Backend().(*servertest.TableLimiter)
		lim.Err = test.err
		c.sess.Do(words("RL.TOKENBUCKET k 1/s 10"))
		c.sess.Do(words("RL.FIXED k FOREVER 10"))
		c.sess.DecidePending()
		got := strings.Split(flat(t, string(c.wire.Out)), "; ")
		require.Len(t, got, 2)
		for _, reply := range got {
			assert.True(t, strings.HasPrefix(reply, "-"+test.word+" "), reply)
		}
	}
}

// words returns a command in the form that the framer delivers.
func words(line string) (args [][]byte) {
	for _, w := range split(line) {
		args = append(args, []byte(w))
	}
	return args
}

func TestPipelineIsOneCallAndKeepsItsOrder(t *testing.T) {
	c := defaultClient(t)
	lim := c.sess.srv.Limiter.Backend().(*servertest.TableLimiter)
	for range 100 {
		c.sess.Do(words("RL.TOKENBUCKET k 1/s 1000"))
	}
	assert.Equal(t, 100, len(c.sess.batch.Ops))
	assert.Empty(t, c.wire.Out)
	c.sess.DecidePending()
	assert.Equal(t, 1, lim.Calls)
	c.wire.Truncate(0)

	for _, line := range []string{"RL.FIXED f FOREVER 9", "PING", "RL.FIXED f FOREVER x", "RL.FIXED f FOREVER 9",
		"NOPE", "RL.RESET f g", "EXISTS f"} {
		c.sess.Do(words(line))
	}
	c.sess.DecidePending()
	assert.Equal(t, "1 8 0 -1 9; PONG; -ERR max must be a whole number from 1 to 9007199254740992, not 'x'; "+
		"1 7 0 -1 9; "+
		"-ERR unknown command 'NOPE', with args beginning with: ; 1; 0", flat(t, string(c.wire.Out)))
}

func TestBatchNeverExceedsMaxBatch(t *testing.T) {
	c := defaultClient(t)
	reset := words("RL.RESET" + differentKeys(700))
	c.sess.Do(reset)
	c.sess.Do(reset)
	assert.Equal(t, 700, len(c.sess.batch.Ops))
}

// differentKeys returns n keys, each after a space.
func differentKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprint(&b, " k", i)
	}
	return b.String()
}

// instant answers every operation at once.
type instant struct{ limiter.Limiter }

func (instant) Decide(ops []engine.Op, out []engine.Decision) error {
	for i := range ops {
		out[i] = engine.Decision{Allowed: 1, Remaining: 99, ResetMs: 100, Limit: 100}
	}
	return nil
}

var noPolicies engine.Policies

func (instant) Policies() *engine.Policies { return &noPolicies }

func TestDecisionsDoNotAllocate(t *testing.T) {
	race.Skip(t, "makes sync.Pool forget")
	for _, line := range []string{
		"RL.TOKENBUCKET user:42 10/s 100 COST 2 ID abc",
		"rl.leakybucket user:42 5/m 100",
		"RL.FIXED user:42 1m 100 FIRST",
		"RL.SLIDING user:42 1m 100 PARTIAL",
		"RL.SLIDINGCOUNTER user:42 1h 100",
		"RL.ACQUIRE user:42 10 30s HOLDER me",
		"RL.STRIKE user:42 15m 4 2s 6 5s",
		"CL.THROTTLE user:42 15 30 60",
		"RL.RELEASE user:42 me",
	} {
		s := sessionOn(t, instant{})
		args := words(line)
		run := func() {
			for range 16 {
				s.Do(args)
			}
			s.DecidePending()
			s.Truncate(0)
		}
		run()
		assert.Zero(t, testing.AllocsPerRun(200, run), line)
	}
}

func sessionOn(t testing.TB, lim limiter.Limiter) *Session {
	srv, err := NewShared(Config{}, lim)
	require.NoError(t, err)
	return NewSession(srv, &fakeClient{id: 1}, new(resp.Wire))
}

func TestCalendarWindowIsWorkedOutOnce(t *testing.T) {
	c := timezone.NewCalendars()
	now := engine.Stamp{NowNs: 1, WallOffsetNs: servertest.TestWallNs}
	first, err := c.At(now, engine.Day, []byte("Europe/Berlin"))
	require.NoError(t, err)
	again, err := c.At(now, engine.Day, []byte("Europe/Berlin"))
	require.NoError(t, err)
	assert.Same(t, first, again)
	now.NowNs += int64(24 * time.Hour)
	next, err := c.At(now, engine.Day, []byte("Europe/Berlin"))
	require.NoError(t, err)
	assert.Equal(t, first.NextEndNs, next.EndNs)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.At(now, engine.Day, []byte("Europe/Berlin")) }))
}
