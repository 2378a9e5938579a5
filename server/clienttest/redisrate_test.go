package clienttest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	redis_rate "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestRedisRateAnswersAsItsScripts checks that the library gets the same answers from weir and from the judge, for
// thousands of random calls, while both clocks advance in steps of microseconds.
func TestRedisRateAnswersAsItsScripts(t *testing.T) {
	weirAddr, judgeAddr := twins(t)
	clients := []*redis.Client{redis.NewClient(&redis.Options{Addr: weirAddr}),
		redis.NewClient(&redis.Options{Addr: judgeAddr})}
	for _, c := range clients {
		defer func() { _ = c.Close() }()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	limits := make([]redis_rate.Limit, 40)
	for i := range limits {
		limits[i] = redis_rate.Limit{
			Rate: 1 + rng.IntN(100), Burst: 1 + rng.IntN(50),
			Period: time.Duration(1+rng.IntN(5000)) * time.Millisecond,
		}
	}
	denied, partly := 0, 0
	for range 4000 {
		i := rng.IntN(len(limits))
		key, limit, n := fmt.Sprint("key", i%8), limits[i], rng.IntN(limits[i].Burst+3)
		atMost, remove := rng.IntN(3) == 0, rng.IntN(200) == 0
		ms, us := rng.IntN(rng.IntN(400)+1), rng.IntN(1000)
		var answers [2]string
		for k, c := range clients {
			l := redis_rate.NewLimiter(c)
			require.NoError(t, c.Do(t.Context(), "DEBUG", "CLOCK", "ADVANCE", ms, us).Err())
			var r *redis_rate.Result
			var err error
			switch {
			case remove:
				err = l.Reset(t.Context(), key)
			case atMost:
				r, err = l.AllowAtMost(t.Context(), key, limit, n)
			default:
				r, err = l.AllowN(t.Context(), key, limit, n)
			}
			require.NoError(t, err)
			ttl, err := c.PTTL(t.Context(), "rate:"+key).Result()
			require.NoError(t, err)
			answers[k] = fmt.Sprintf("%+v %d", r, ttl)
			if r != nil && n > 0 && r.Allowed == 0 {
				denied++
			} else if r != nil && r.Allowed < n {
				partly++
			}
		}
		require.Equal(t, answers[1], answers[0], "%s %+v of %d, at most %v", key, limit, n, atMost)
	}
	require.Greater(t, denied, 500)
	require.Greater(t, partly, 100)
}
