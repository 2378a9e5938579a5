// Command limiters makes random calls of a Go limiter library against a server, and moves the server's test clock
// between them. A seed determines the calls, so that they can be repeated against another server. limiters_test.go
// passes the arguments: library, port, seed, and number of calls. The command prints one line for each answer. It is a
// module of its own, so that weir does not depend on the dependencies of go-zero.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	store "github.com/ulule/limiter/v3/drivers/store/redis"
	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

var ctx = context.Background()

func main() {
	logx.Disable()
	addr := "127.0.0.1:" + os.Args[2]
	seed, calls := number(os.Args[3]), number(os.Args[4])
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	call := map[string]func(string, *goredis.Client, *rand.Rand) func() any{
		"ulule": ulule, "go-zero-period": zeroPeriod, "go-zero-token": zeroToken,
		"redsync": redsyncLock,
	}[os.Args[1]](addr, client, rng)
	for range calls {
		must(client.Do(ctx, "DEBUG", "CLOCK", "ADVANCE", rng.IntN(1+rng.IntN(900))).Err())
		fmt.Printf("%+v\n", call())
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ulule(_ string, client *goredis.Client, rng *rand.Rand) func() any {
	s, err := store.NewStore(client)
	must(err)
	limiters := []*limiter.Limiter{
		limiter.New(s, limiter.Rate{Period: time.Second, Limit: 4}),
		limiter.New(s, limiter.Rate{Period: 2500 * time.Millisecond, Limit: 10}),
	}
	return func() any {
		l, key := limiters[rng.IntN(2)], fmt.Sprint("k", rng.IntN(3))
		var c limiter.Context
		var err error
		switch rng.IntN(8) {
		case 0:
			c, err = l.Peek(ctx, key)
		case 1:
			c, err = l.Reset(ctx, key)
		case 2, 3:
			c, err = l.Increment(ctx, key, int64(rng.IntN(4)))
		default:
			c, err = l.Get(ctx, key)
		}
		must(err)
		left, err := client.PTTL(ctx, "limiter:"+key).Result()
		must(err)
		return fmt.Sprint(c.Limit, c.Remaining, c.Reached, left)
	}
}

func zeroPeriod(addr string, _ *goredis.Client, rng *rand.Rand) func() any {
	conn := redis.MustNewRedis(redis.RedisConf{Host: addr, Type: redis.NodeType})
	limiters := []*limit.PeriodLimit{limit.NewPeriodLimit(1, 5, conn, "a"), limit.NewPeriodLimit(3, 7, conn, "b")}
	return func() any {
		code, err := limiters[rng.IntN(2)].Take(fmt.Sprint("k", rng.IntN(3)))
		must(err)
		return code
	}
}

// zeroToken calls a limiter to which the client passes the time. That time may step back.
func zeroToken(addr string, client *goredis.Client, rng *rand.Rand) func() any {
	conn := redis.MustNewRedis(redis.RedisConf{Host: addr, Type: redis.NodeType})
	var limiters []*limit.TokenLimiter
	for i := range 4 {
		limiters = append(limiters, limit.NewTokenLimiter(1+rng.IntN(9), 10+rng.IntN(20), conn, fmt.Sprint("k", i%3)))
	}
	nowS := int64(1_790_000_000)
	return func() any {
		nowS += int64(rng.IntN(6)) - 2
		i := rng.IntN(4)
		admitted := limiters[i].AllowN(time.Unix(nowS, 0), rng.IntN(8))
		left, err := client.PTTL(ctx, fmt.Sprintf("{k%d}.tokens", i%3)).Result()
		must(err)
		return fmt.Sprint(admitted, left)
	}
}

// redsyncLock takes, lengthens and releases locks whose tokens may be those of others.
func redsyncLock(_ string, client *goredis.Client, rng *rand.Rand) func() any {
	locks := redsync.New(redsyncredis.NewPool(client))
	var mutexes []*redsync.Mutex
	for i := range 9 {
		mutexes = append(mutexes, locks.NewMutex(fmt.Sprint("k", i%3), redsync.WithTries(1),
			redsync.WithExpiry(time.Duration(1+i)*300*time.Millisecond),
			redsync.WithGenValueFunc(func() (string, error) { return fmt.Sprint("token", i/3), nil })))
	}
	return func() any {
		m := mutexes[rng.IntN(len(mutexes))]
		var ok bool
		var err error
		switch rng.IntN(4) {
		case 0, 1:
			err = m.Lock()
		case 2:
			ok, err = m.Unlock()
		default:
			ok, err = m.Extend()
		}
		return fmt.Sprint(ok, err)
	}
}
