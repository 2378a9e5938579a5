package clienttest

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/documents"
)

// twin sends the same commands to a weir and to a Redis.
type twin struct {
	t           *testing.T
	redis, weir redis.Conn
}

func newTwin(t *testing.T) *twin {
	t.Helper()
	atRedis, err := redis.Dial("unix", startRedis(t))
	require.NoError(t, err)
	atWeir, err := redis.Dial("tcp", startWeir(t).addr)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = atRedis.Close(), atWeir.Close() })
	return &twin{t, atRedis, atWeir}
}

// same sends a command to both servers, and fails the test unless the answers are equal.
func (x *twin) same(command string, args ...any) any {
	x.t.Helper()
	want, wantErr := x.redis.Do(command, args...)
	got, gotErr := x.weir.Do(command, args...)
	require.Equal(x.t, wantErr, gotErr, "%s %v", command, args)
	require.Equal(x.t, want, got, "%s %v", command, args)
	return got
}

// TestBucketsInHashes checks the scripts in which two systems of examples/systems/requirements.md keep their token buckets. They get the
// same answers from weir as from Redis, to the last digit, and leave the same hash.
func TestBucketsInHashes(t *testing.T) {
	const perScript = 4000
	for name, c := range map[string]struct {
		sum, timeField string
		args           func(r *rand.Rand, now string) []any
		steady         func(now string) []any // for a bucket that is rarely full, so that rounding errors add up
	}{
		"gateway": {"a27501a87b1775642eb421bbfb630f1ed357f5ae", "lastRefill", func(r *rand.Rand, now string) []any {
			return []any{pick(r, "10", "1", "0.5", "3", "7.3", "0", "-2", "1000000", "1e-3", "9007199254740992"),
				pick(r, "50", "5", "15", "0", "2.5", "1", "-1", "9007199254740992"), now,
				pick(r, "120", "120", "3600", "0", "-5", "1000000000")}
		}, func(now string) []any { return []any{"0.3333", "100000", now, "3600"} }},
		"marketplace": {"6c467d43a574bf5fbdeb4d532c986b314eff358f", "last_refill",
			func(r *rand.Rand, now string) []any {
				return []any{pick(r, "60", "20", "5", "3", "2.5", "1000"),
					pick(r, "0.083333333333333333", "0.3333", "0.01", "1e-3", "-1", "0.0166"), now,
					pick(r, "1", "1", "2", "0.3", "0", "7", "100", "-1")}
			}, func(now string) []any { return []any{"100000", "0.3333", now, "1"} }},
	} {
		t.Run(name, func(t *testing.T) {
			text := documents.Script(t, c.sum)
			x, r := newTwin(t), rand.New(rand.NewPCG(27, 4))
			forms := spellings(text)
			for _, form := range forms {
				x.same("SCRIPT", "LOAD", form)
			}
			nowMs := int64(1_708_956_000_000)
			for i := range perScript {
				key := "bucket:" + strconv.Itoa(r.IntN(4))
				nowMs += []int64{0, 1, 7, 50, 333, 1000, 4999, -400}[r.IntN(8)]
				now := strconv.FormatInt(nowMs, 10) + pick(r, "", "", "", "", ".5", ".1")
				all := append([]any{pick(r, forms...), 1, key}, c.args(r, now)...)
				if r.IntN(2) == 0 {
					key = "bucket:steady"
					all = append([]any{text, 1, key}, c.steady(now)...)
				}
				switch r.IntN(20) {
				case 0:
					x.same("DEL", "bucket:"+strconv.Itoa(r.IntN(4)))
				case 1:
					all[0] = c.sum
					x.same("EVALSHA", all...)
				default:
					x.same("EVAL", all...)
				}
				x.same("HGETALL", key)
				x.same("HGET", key, "tokens")
				x.same("HMGET", key, c.timeField, "nothing", "tokens")
				x.same("HLEN", key)
				x.same("HKEYS", key)
				x.same("HEXISTS", key, "tokens")
				x.same("TYPE", key)
				x.same("EXISTS", key)
				if i%100 == 0 {
					x.sameTTL(key)
				}
			}
			x.same("KEYS", "bucket:9*")
		})
	}
}

// sameTTL compares the times to live, which may differ a little, because the two processes have different clocks.
func (x *twin) sameTTL(key string) {
	x.t.Helper()
	want, err := redis.Int64(x.redis.Do("TTL", key))
	require.NoError(x.t, err)
	got, err := redis.Int64(x.weir.Do("TTL", key))
	require.NoError(x.t, err)
	require.InDelta(x.t, want, got, 5, "TTL %s", key)
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// TestDeleteAll checks that the Lua line which deletes all keys that match a pattern is answered as by Redis.
func TestDeleteAll(t *testing.T) {
	x := newTwin(t)
	deleteAll := func(pattern string) string {
		return "return redis.call('del', unpack(redis.call('keys', '" + pattern + "')))"
	}
	for _, pattern := range []string{"ratelimit:*", "rl:[ab]*", "none"} {
		x.same("EVAL", deleteAll(pattern), 0)
		for _, key := range []string{"ratelimit:a", "ratelimit:b", "rl:a", "rl:b", "rl:c", "other"} {
			x.same("SET", key, 1)
		}
		x.same("EVAL", deleteAll(pattern), 1, "unused")
		x.same("EVAL", deleteAll(pattern), 0)
		x.same("EVAL", deleteAll(pattern), -1)
		x.same("EVAL", deleteAll(pattern), 3, "a")
		for _, key := range []string{"ratelimit:a", "ratelimit:b", "rl:a", "rl:b", "rl:c", "other"} {
			x.same("EXISTS", key)
		}
	}
}
