package middleware

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	store "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
)

const (
	// rounds is the number of turns behind each median. Many short turns spread the noise of the machine over all
	// contenders.
	rounds = 61
	// requests is the number of requests in a turn. It is large enough to make the cost of the start negligible.
	requests = 500
	// atOnce is the number of concurrent requests in the turns that have more than one.
	atOnce = 32
	// users is the number of limited keys. Each key is an address.
	users = 1000
	// generous is a limit that no key reaches, so every request passes.
	generous = 1 << 30
)

// contender is the handler behind a middleware, and the server of that middleware.
type contender struct {
	name string
	pids []int // of the application and the server
	http.Handler
}

// cost is the cost of a request.
type cost struct{ wall, cpu time.Duration }

// TestOverhead prints the cost that each middleware adds to a request of the handler: latency, and processor time of
// the application and the server.
func TestOverhead(t *testing.T) {
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	ours, theirs, self := weir(t), redisServer(t), os.Getpid()
	contenders := []contender{
		{"plain", []int{self}, plain},
		{"weir", []int{self, ours.pid}, behindWeir(t, ours.Client, plain)},
		{"ulule/limiter", []int{self, theirs.pid}, behindUlule(t, theirs.Client, plain)},
		{"httprate-redis", []int{self, theirs.pid}, behindHTTPRate(t, theirs.Client, plain)},
	}
	for _, workers := range []int{1, atOnce} {
		walls, cpus := make([][]time.Duration, len(contenders)), make([][]time.Duration, len(contenders))
		for range rounds {
			for i := range contenders {
				took := contenders[i].turn(t, workers)
				walls[i], cpus[i] = append(walls[i], took.wall), append(cpus[i], took.cpu)
			}
		}
		over := func(i int) cost {
			return cost{median(walls[i]) - median(walls[0]), median(cpus[i]) - median(cpus[0])}
		}
		for i, c := range contenders[1:] {
			t.Logf("%2d at once, %-14s: %v a request, %v of processor time", workers, c.name, over(i+1).wall,
				over(i+1).cpu)
		}
		for i := 2; i < len(contenders); i++ {
			t.Logf("%2d at once, weir is at %.2fx of the time and %.2fx of the processor time of %s", workers,
				float64(over(1).wall)/float64(over(i).wall), float64(over(1).cpu)/float64(over(i).cpu),
				contenders[i].name)
		}
	}
}

// turn returns the cost of a request in one turn.
func (c *contender) turn(t *testing.T, workers int) cost {
	began, used := time.Now(), cpuOf(t, c.pids...)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := w; i < requests; i += workers {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.RemoteAddr = "10.1." + strconv.Itoa(i%users/250) + "." + strconv.Itoa(i%250) + ":4711"
				answer := httptest.NewRecorder()
				if c.ServeHTTP(answer, r); answer.Code != http.StatusNoContent {
					t.Errorf("status %d", answer.Code)
				}
			}
		})
	}
	running.Wait()
	return cost{time.Since(began) / requests, (cpuOf(t, c.pids...) - used) / requests}
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func behindWeir(t *testing.T, rdb *redis.Client, next http.Handler) http.Handler {
	c, err := client.New(rdb, client.Options{WhenDown: client.Closed, Timeout: startup,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	limit, err := httplimit.New(c, httplimit.Options{
		Routes: []httplimit.Route{{Pattern: "/", Rule: client.FixedFirst(time.Hour, generous),
			Key: new(httplimit.Proxies).ByIP()}},
	})
	require.NoError(t, err)
	return limit(next)
}

func behindUlule(t *testing.T, rdb *redis.Client, next http.Handler) http.Handler {
	s, err := store.NewStore(rdb)
	require.NoError(t, err)
	return stdlib.NewMiddleware(limiter.New(s, limiter.Rate{Period: time.Hour, Limit: generous})).Handler(next)
}

func behindHTTPRate(t *testing.T, rdb *redis.Client, next http.Handler) http.Handler {
	counter, err := httprateredis.NewRedisLimitCounter(
		&httprateredis.Config{Client: rdb, FallbackDisabled: true, FallbackTimeout: startup})
	require.NoError(t, err)
	return httprate.Limit(generous, time.Hour, httprate.WithKeyByIP(), httprate.WithLimitCounter(counter))(next)
}
