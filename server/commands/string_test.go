package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

const bucketSwap = "9450de540565d89de15092a716555821601f128b"

// TestStringsAreBounded checks that every string command refuses a string beyond the bound, and keeps the previous
// value.
func TestStringsAreBounded(t *testing.T) {
	c := newTestServer(t, Config{MaxValueBytes: 8}).client(t)
	require.Equal(t, "OK", c.say("SET k 12345678"))
	require.Equal(t, "OK", c.say("SET k 1234abcd"))
	const tooLong = "-ERR a value must be at most 8 bytes (--max-value-bytes), not 9"
	for _, line := range []string{
		"SET k 1234abcde", "SETNX n 1234abcde", "SETEX k 9 1234abcde", "PSETEX k 9 1234abcde", "GETSET k 1234abcde",
		"EVALSHA " + bucketSwap + " 1 k 1234abcd 1234abcde", "EVALSHA " + bucketSwap + " 1 k 1234abcde v",
	} {
		assert.Equal(t, tooLong, c.say(line), line)
	}
	assert.Equal(t, "-"+string(service.ErrValueTooLong), c.say("APPEND k x"))
	assert.Equal(t, "1234abcd", c.say("GET k"))
	assert.Equal(t, "0", c.say("EXISTS n"))
	for _, bytes := range []int{-1, engine.MaxValueBytes + 1} {
		_, err := NewShared(Config{MaxValueBytes: bytes}, servertest.NewTableLimiter())
		require.ErrorIs(t, err, ErrBadConfig)
	}
}

// TestStringsAndLimiters checks that a string command neither reads nor overwrites a limiter.
func TestStringsAndLimiters(t *testing.T) {
	c := defaultClient(t)
	before := c.say("RL.FIXED lim 1m 5")
	for _, line := range []string{
		"GET lim", "SET lim x", "SET lim 5", "SETNX lim x", "GETDEL lim", "GETEX lim", "APPEND lim x", "STRLEN lim",
		"EXPIRE lim 5 NX", "PERSIST lim",
		"EVALSHA " + bucketSwap + " 1 lim a b",
	} {
		assert.Equal(t, "-"+string(service.ErrWrongType), c.say(line), line)
	}
	assert.Equal(t, "nil", c.say("MGET lim"))
	assert.Equal(t, "fixed", c.say("TYPE lim"))
	assert.NotEqual(t, before, c.say("RL.FIXED lim 1m 5"), "the limiter must continue from its state")
	require.Equal(t, "OK", c.say("SET s x"))
	assert.Equal(t, "-"+string(service.ErrWrongType), c.say("RL.FIXED s 1m 5"))
	assert.Equal(t, "string", c.say("TYPE s"))
	assert.Equal(t, "1", c.say("DEL s"))
	assert.Equal(t, "none", c.say("TYPE s"))
}

// TestBlockedStrings checks that string commands on a blocked key are errors and change nothing, so no client takes
// the block for a value. Counts answer as before.
func TestBlockedStrings(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "OK", c.say("SET s state PX 60000"))
	require.Equal(t, "1", c.say("INCR n"))
	require.Equal(t, "OK", c.say("RL.BLOCK s 1m"))
	require.Equal(t, "OK", c.say("RL.BLOCK n 1m"))
	for _, line := range []string{
		"GET s", "MGET s", "SET s x", "SETNX s x", "GETSET s x", "GETDEL s", "GETEX s", "STRLEN s", "APPEND s x",
		"PEXPIRE s 5 XX", "PERSIST s",
		"EVALSHA " + bucketSwap + " 1 s state x", "SET n x", "SET n 5", "SET n 5 EX 9", "SET n 5 NX", "SET s 5",
	} {
		assert.Equal(t, "-"+string(service.ErrKeyBlocked), c.say(line), line)
	}
	for _, line := range []string{"GET n", "INCR n"} {
		assert.Equal(t, "2147483647", c.say(line), line)
	}
	c.say("RL.UNBLOCK n")
	assert.Equal(t, "1", c.say("GET n"))
	c.say("RL.UNBLOCK s")
	assert.Equal(t, "state", c.say("GET s"))
	assert.Equal(t, "60000", c.say("PTTL s"))
}

// TestAnswersWithStringsAreBounded checks the bound on the strings in one reply. One call to the Limiter, one MGET
// and one transaction each reserve the longest possible string for every key.
func TestAnswersWithStringsAreBounded(t *testing.T) {
	srv := newTestServer(t, Config{MaxValueBytes: engine.MaxValueBytes, MaxBulkBytes: 16 << 20})
	c := srv.client(t)
	const most = maxBatchValues / engine.MaxValueBytes
	require.Equal(t, "-ERR MGET takes at most 4 keys where --max-value-bytes is 1048576",
		c.say("MGET"+strings.Repeat(" k", most+1)))
	require.Len(t, strings.Split(c.raw(strings.Fields("MGET"+strings.Repeat(" k", most))...), "$-1"), most+1)
	require.Equal(t, "OK", c.say("MULTI"))
	for range most {
		require.Equal(t, "QUEUED", c.say("GET k"))
	}
	require.Equal(t, "-"+string(errMultiTooLong), c.say("GET k"))
	require.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))

	calls := srv.lim.Calls
	for range 3 * most {
		c.sess.Do([][]byte{[]byte("GET"), []byte("k")})
	}
	c.sess.DecidePending()
	require.Equal(t, 3, srv.lim.Calls-calls, "the read must be split into this many calls to the Limiter")
}
