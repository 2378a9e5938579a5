package clienttest

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// fastifySHA1 is the script of @fastify/rate-limit whose window grows as a power of 2.
	fastifySHA1 = "b8a19d47785922bb04e7a9fdb49e90d89be1b8af"
	// powerInRedis computes in Redis' own Lua the window after the second hit. Its arguments are the first window and
	// the limit.
	powerInRedis = `"return string.format('%.0f',math.min(ARGV[1]*2^(2-ARGV[2]-1),2^53-1))"`
	// unlikeRedis bounds how many of a thousand powers may differ from Redis in the last digit. The function pow of
	// the C library that Redis uses does not always round to the nearest double. Usually one power differs.
	unlikeRedis = 10
)

// TestBackoffIsThatOfRedis compares the growing windows of @fastify/rate-limit with Redis, for powers of 2 with
// fractional exponents. The first window is so long that its last digit shows the last bit of the power.
func TestBackoffIsThatOfRedis(t *testing.T) {
	const windowMs, powers = int64(1)<<52 + 1, 1000
	redis, weir := dialLines(t, "unix", startRedis(t)), dialLines(t, "tcp", startWeir(t).addr)
	differ := 0
	for i := range powers {
		most := strconv.FormatFloat(float64(i)/powers, 'f', 3, 64)
		hit := fmt.Sprintf("EVALSHA %s 1 k%d %d %s false true", fastifySHA1, i, windowMs, most)
		weir(hit)
		want := lastNumber(t, redis(fmt.Sprintf("EVAL %s 0 %d %s", powerInRedis, windowMs, most)))
		got := lastNumber(t, weir(hit))
		require.InDelta(t, want, got, 1, "a limit of %s", most)
		if want != got {
			differ++
		}
	}
	assert.LessOrEqual(t, differ, unlikeRedis)
	t.Logf("%d of %d powers differ from Redis' in the last digit", differ, powers)
}

func lastNumber(t *testing.T, reply []string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(reply[len(reply)-1], ":"), 10, 64)
	require.NoError(t, err, "%q", reply)
	return n
}

// dialLines returns a function that sends a line and returns the lines of the reply.
func dialLines(t *testing.T, network, addr string) func(line string) []string {
	c, err := net.Dial(network, addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	replies := bufio.NewReader(c)
	return func(line string) []string {
		_, err := c.Write([]byte(line + "\r\n"))
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(readRaw(replies))), "\r\n")
	}
}
