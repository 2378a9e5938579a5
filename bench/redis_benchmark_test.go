package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const csvNames = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"

func TestParseRedisBenchmark(t *testing.T) {
	outcome, err := parseRedisBenchmark(csvNames +
		`"SET key:__rand_int__ x","503778.31","1.386","0.224","1.279","2.423","4.399","7.151"` + "\n")
	require.NoError(t, err)
	require.Equal(t, Outcome{PerSecond: 503778.31, Latency: Latency{P50Ms: 1.279, P99Ms: 4.399, MaxMs: 7.151}}, outcome)
}

func TestParseRedisBenchmarkRefuses(t *testing.T) {
	for name, out := range map[string]string{
		"nothing":       "",
		"no values":     csvNames,
		"two commands":  csvNames + strings.Repeat(`"a","1","1","1","1","1","1","1"`+"\n", 2),
		"not a number":  csvNames + `"a","fast","1","1","1","1","1","1"` + "\n",
		"nothing done":  csvNames + `"a","0.00","1","1","1","1","1","1"` + "\n",
		"not a rate":    csvNames + `"a","nan","1","1","1","1","1","1"` + "\n",
		"other columns": "\"test\",\"ops\"\n\"a\",\"1\"\n",
		"error":         "Error from server: NOSCRIPT No matching script. Please use EVAL.\n",
	} {
		_, err := parseRedisBenchmark(out)
		require.ErrorIs(t, err, ErrLoadOutput, name)
	}
}

func TestRedisBenchmarkCommandLine(t *testing.T) {
	line := RedisBenchmark{Binary: "redis-benchmark"}.CommandLine(Job{
		Addr: "127.0.0.1:6380", Commands: weirCommands(), Load: bucket(50, 128), Requests: 6400,
	})
	require.Equal(t, "redis-benchmark -h 127.0.0.1 -p 6380 -c 50 -P 128 -r 100000 -n 6400 --csv "+
		"RL.TOKENBUCKET key:__rand_int__ 10 20", strings.Join(line, " "))
}

func TestRedisBenchmarkStopsAtAnErrorReply(t *testing.T) {
	tools := needTools(t)
	addr := startFake(t, &fakeServer{reply: func([]string) string { return "-ERR no such thing\r\n" }})
	_, err := RedisBenchmark{Binary: tools.RedisBenchmark}.Run(context.Background(), Job{
		Addr: addr, Commands: weirCommands(), Load: Load{Workload: TokenBucket, Clients: 1, Pipeline: 1, Keys: 10},
		Requests: 10,
	})
	require.ErrorContains(t, err, "no such thing")
}

// TestRedisBenchmarkIsNotWaitedForInVain checks that the run ends although redis-benchmark waits forever for a
// missing answer.
func TestRedisBenchmarkIsNotWaitedForInVain(t *testing.T) {
	tools := needTools(t)
	addr := startFake(t, &fakeServer{reply: func([]string) string { return "" }})
	_, err := RedisBenchmark{Binary: tools.RedisBenchmark, Patience: 200 * time.Millisecond}.Run(
		context.Background(), Job{
			Addr: addr, Commands: weirCommands(), Load: Load{Workload: TokenBucket, Clients: 1, Pipeline: 1, Keys: 10},
			Requests: 10,
		})
	require.ErrorIs(t, err, ErrStuck)
}
