package commands

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/servertest"
)

// These tests cover the memory that clients make the server hold when they stop in the middle of something: a little
// for each, and at most MaxHeldBytes together.

func TestBudget(t *testing.T) {
	var b Budget
	assert.True(t, b.Reserve(MaxHeldBytes-1))
	assert.False(t, b.Reserve(2))
	assert.True(t, b.Reserve(1))
	b.Release(MaxHeldBytes)
	assert.Zero(t, b.Used.Load())
}

// TestTransactionCountsWhatArgumentsTake checks that an empty argument counts too.
func TestTransactionCountsWhatArgumentsTake(t *testing.T) {
	c := defaultClient(t)
	c.say("MULTI")
	args := append([]string{"EXISTS"}, make([]string, resp.MaxArgs-1)...)
	n := 0
	for c.raw(args...) == "+QUEUED\r\n" {
		n++
	}
	assert.Equal(t, maxQueuedBytes/(queuedCommandBytes+len("EXISTS")+resp.MaxArgs*queuedArgBytes), n)
	assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))
}

func TestTransactionsShareBoundedMemory(t *testing.T) {
	srv := newTestServer(t, Config{})
	hoard := func() *testClient {
		c := srv.client(t)
		c.say("MULTI")
		require.Equal(t, "+QUEUED\r\n", c.raw("ECHO", strings.Repeat("x", 60_000)))
		return c
	}
	for name, end := range map[string]func(*testClient){
		"EXEC":    func(c *testClient) { c.say("EXEC") },
		"DISCARD": func(c *testClient) { c.say("DISCARD") },
		"RESET":   func(c *testClient) { c.say("RESET") },
		"gone":    func(c *testClient) { c.sess.Close() },
	} {
		c := hoard()
		assert.Positive(t, srv.Held.Used.Load())
		end(c)
		assert.Zero(t, srv.Held.Used.Load(), name)
	}

	c := hoard()
	srv.Held.Used.Add(MaxHeldBytes)
	assert.Equal(t, "-OVERLOADED "+limiter.ErrOverloaded.Error(), c.say("ECHO x"))
	assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))
	c.say("MULTI")
	assert.Equal(t, "QUEUED", c.say("RL.FIXED a FOREVER 5"), "an ordinary transaction must always fit")
	assert.Equal(t, "1 4 0 -1 5", c.say("EXEC"))
	assert.EqualValues(t, MaxHeldBytes, srv.Held.Used.Load())
}

func TestRepliesOfATransactionAreBounded(t *testing.T) {
	c := defaultClient(t)
	c.say("MULTI")
	for range 1000 {
		require.Equal(t, "QUEUED", c.say("COMMAND DOCS"))
	}
	c.say("RL.FIXED a FOREVER 5")
	reply := c.raw("EXEC")
	assert.Less(t, len(reply), 2*maxExecBytes)
	items := flat(t, reply)
	assert.Contains(t, items, string(errExecTooLong))
	assert.True(t, strings.HasSuffix(items, "1 4 0 -1 5"), "the reply must contain the decision")
}

func TestClientTextsAreShort(t *testing.T) {
	c := defaultClient(t)
	long := strings.Repeat("n", maxClientTextBytes)
	for _, line := range []string{"CLIENT SETNAME ", "CLIENT SETINFO lib-name ", "CLIENT SETINFO lib-ver ",
		"HELLO 2 SETNAME "} {
		assert.NotContains(t, c.say(line+long), "ERR", line)
		assert.Contains(t, c.say(line+long+"n"), "must be at most 256 bytes, not 257", line)
	}
	assert.Equal(t, long, c.say("CLIENT GETNAME"))
}

func TestPubSubPatternIsBounded(t *testing.T) {
	c := defaultClient(t)
	assert.Equal(t, "-"+string(errPatternLong), c.say("PUBSUB CHANNELS "+strings.Repeat("a", maxPatternBytes+1)))
}

// TestBulkyCommandsTakeTurns checks that only a few commands whose work grows with the server run at once.
func TestBulkyCommandsTakeTurns(t *testing.T) {
	for _, line := range []string{"KEYS *", "SCAN 0", "CLIENT LIST", "SLOWLOG GET", "PUBSUB CHANNELS"} {
		synctest.Test(t, func(t *testing.T) {
			srv := newTestServer(t, Config{})
			for range cap(srv.bulky) {
				srv.bulky <- struct{}{}
			}
			var done atomic.Bool
			c := srv.client(t)
			go func() {
				c.say(line)
				done.Store(true)
			}()
			synctest.Wait()
			assert.False(t, done.Load(), line)
			assert.Equal(t, "PONG", srv.client(t).say("PING"))
			<-srv.bulky
			synctest.Wait()
			assert.True(t, done.Load(), line)
			assert.Len(t, srv.bulky, cap(srv.bulky)-1, line)
		})
	}
}

// scanLocked is a limiter whose Scan holds a lock, as the engine's does.
type scanLocked struct {
	*servertest.TableLimiter
	locked bool
}

func (l *scanLocked) Scan(cursor uint64, count int, visit func([]byte, engine.Algorithm)) uint64 {
	l.locked = true
	defer func() { l.locked = false }()
	return l.TableLimiter.Scan(cursor, count, visit)
}

// TestPatternsAreMatchedOutsideOfScan checks that patterns are not matched under the table's locks, because matching
// may take long.
func TestPatternsAreMatchedOutsideOfScan(t *testing.T) {
	srv := newTestServer(t, Config{})
	lim := &scanLocked{TableLimiter: srv.lim}
	srv.client(t).say("RL.FIXED a FOREVER 5")
	matched := 0
	list := keyList{keep: func(key []byte, a engine.Algorithm) bool {
		matched++
		assert.False(t, lim.locked)
		return true
	}}
	lim.Scan(0, 10, list.visit)
	list.sift()
	assert.Equal(t, 1, matched)
	assert.Equal(t, [][]byte{[]byte("a")}, list.names())
}

// TestZoneHasOneName checks that a zone's path has one accepted form. Other forms would fill the memory for zones.
func TestZoneHasOneName(t *testing.T) {
	c := defaultClient(t)
	for _, zone := range []string{"Europe/./Berlin", "./Europe/Berlin", "Europe//Berlin", "Europe/Berlin/",
		"../zoneinfo/UTC", "."} {
		assert.Contains(t, c.say("RL.FIXED k DAY 5 TZ "+zone), "must be an IANA time zone", zone)
	}
}

func TestTestClockEndsWhereItSays(t *testing.T) {
	c := defaultClient(t)
	assert.Contains(t, c.say("DEBUG CLOCK SET 2305843009214"), "ERR ms must be")
	assert.Equal(t, "OK", c.say("DEBUG CLOCK SET 2305843009213"))
}
