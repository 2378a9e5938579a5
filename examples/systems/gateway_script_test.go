package systems

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// gatewayKey is the key of the bucket of one route and one client.
const gatewayKey = "ratelimit:550e8400-e29b-41d4-a716-446655440000:192.168.1.100"

// gatewayBucket runs the script as the gateway does, with times that the test chooses.
type gatewayBucket struct {
	t      *testing.T
	rdb    redis.Scripter
	script *redis.Script
}

func newGatewayBucket(t *testing.T, rdb redis.Scripter) *gatewayBucket {
	return &gatewayBucket{t, rdb, redis.NewScript(script(t, gatewayScript))}
}

func (b *gatewayBucket) take(key string, rate, burst int, nowMs int64) (allowed bool, remaining, reset int64) {
	b.t.Helper()
	three, err := b.script.Run(b.t.Context(), b.rdb, []string{key}, rate, burst, nowMs, 120).Int64Slice()
	require.NoError(b.t, err)
	require.Len(b.t, three, 3)
	return three[0] == 1, three[1], three[2]
}

// times takes a token n times at nowMs, and returns how often a token was left.
func (b *gatewayBucket) times(n int, key string, rate, burst int, nowMs int64) (allowed int) {
	b.t.Helper()
	for range n {
		if ok, _, _ := b.take(key, rate, burst, nowMs); ok {
			allowed++
		}
	}
	return allowed
}

// TestGatewayScript runs the script's examples in the document's order, and then the commands of an operator, on
// Redis and on weir.
func TestGatewayScript(t *testing.T) {
	for name, start := range map[string]func(*testing.T) gatewayStore{"redis": startGatewayRedis,
		"weir": startGatewayWeir} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			gatewayKnowsScript(t, s)
			rdb := s.Redis()
			bucket := newGatewayBucket(t, rdb)
			gatewayAcceptance(t, bucket)
			gatewayLooks(t, rdb, bucket)
		})
	}
}

func gatewayAcceptance(t *testing.T, bucket *gatewayBucket) {
	now := time.Now().UnixMilli()
	// The first request is admitted, and finds the whole burst.
	ok, remaining, reset := bucket.take("ratelimit:first:client1", 10, 15, now)
	require.True(t, ok)
	require.EqualValues(t, 14, remaining)
	require.Equal(t, now+1000, reset)
	// More than the burst is denied.
	require.Equal(t, 3, bucket.times(4, "ratelimit:burst:client1", 10, 3, now))
	// Five tokens refill in half a second at ten a second.
	require.Equal(t, 15, bucket.times(16, "ratelimit:refill:client1", 10, 15, now))
	require.Equal(t, 5, bucket.times(6, "ratelimit:refill:client1", 10, 15, now+550))
	// 50 at once, then 10 a second, and all of them after five idle seconds.
	require.Equal(t, 50, bucket.times(51, "ratelimit:rate:client1", 10, 50, now))
	require.Equal(t, 10, bucket.times(11, "ratelimit:rate:client1", 10, 50, now+1000))
	require.Equal(t, 50, bucket.times(51, "ratelimit:rate:client1", 10, 50, now+6000))
	// Half a token is not lost: two tokens refill in two seconds, however often the client asks.
	require.Equal(t, 1, bucket.times(2, "ratelimit:half:client1", 1, 1, now))
	admitted := 0
	for ms := int64(500); ms <= 2000; ms += 500 {
		admitted += bucket.times(1, "ratelimit:half:client1", 1, 1, now+ms)
	}
	require.Equal(t, 2, admitted)
	// Of two instances that ask for one token at once, one gets it.
	var got atomic.Int64
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { got.Add(int64(bucket.times(1, "ratelimit:instances:client1", 1, 1, now))) })
	}
	both.Wait()
	require.EqualValues(t, 1, got.Load())
}

func gatewayLooks(t *testing.T, rdb *redis.Client, bucket *gatewayBucket) {
	ctx, now := t.Context(), time.Now().UnixMilli()
	require.Equal(t, 1, bucket.times(1, gatewayKey, 1, 15, now))
	require.Equal(t, 1, bucket.times(1, gatewayKey, 1, 15, now+500))
	keys, err := rdb.Keys(ctx, "ratelimit:*").Result()
	require.NoError(t, err)
	require.Contains(t, keys, gatewayKey)
	require.Len(t, keys, 7)
	fields, err := rdb.HGetAll(ctx, gatewayKey).Result()
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(now+500, 10), fields["lastRefill"])
	tokens, err := strconv.ParseFloat(fields["tokens"], 64)
	require.NoError(t, err)
	require.InDelta(t, 13.5, tokens, 1e-9, "the fraction is kept, and shown")
	ttl, err := rdb.TTL(ctx, gatewayKey).Result()
	require.NoError(t, err)
	require.LessOrEqual(t, math.Abs((ttl - 120*time.Second).Seconds()), 10.0)
	// A deleted bucket begins full again.
	require.EqualValues(t, 1, rdb.Del(ctx, gatewayKey).Val())
	require.EqualValues(t, 0, rdb.Exists(ctx, gatewayKey).Val())
	_, remaining, _ := bucket.take(gatewayKey, 1, 15, now+500)
	require.EqualValues(t, 14, remaining)
	// The document's command deletes all buckets.
	deleted, err := rdb.Eval(ctx, gatewayDeleteAll(t), nil).Int()
	require.NoError(t, err)
	require.Equal(t, 7, deleted)
	require.Empty(t, rdb.Keys(ctx, "ratelimit:*").Val())
}

// gatewayEval is the command by which the document deletes all buckets.
var gatewayEval = regexp.MustCompile(`(?m)^EVAL "(.*)" 0$`)

func gatewayDeleteAll(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv("WEIRTEST_DOCUMENTS"), "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if found := gatewayEval.FindSubmatch(text); found != nil {
			return string(found[1])
		}
	}
	t.Fatal("no document deletes all buckets by an EVAL")
	return ""
}

// TestGatewayScriptInACluster kills the leader of three nodes in the middle. The next leader counts the tokens that
// were taken before.
func TestGatewayScriptInACluster(t *testing.T) {
	text := script(t, gatewayScript)
	cluster := weirproc.StartCluster(t)
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: cluster.Addrs()[:1]})
	if err := rdb.ScriptLoad(t.Context(), text).Err(); err != nil {
		t.Skipf("SKIPPED: this weir does not know the script: %v", err)
	}
	require.NoError(t, rdb.Close())
	leader := cluster.Leader()
	now, admitted := time.Now().UnixMilli(), 0
	admitted += newGatewayBucket(t, leader.Redis()).times(20, gatewayKey, 10, 50, now)
	leader.Kill()
	next := cluster.Leader()
	bucket := newGatewayBucket(t, next.Redis())
	admitted += bucket.times(40, gatewayKey, 10, 50, now)
	require.Equal(t, 50, admitted, "exactly the burst: no count was lost")
}
