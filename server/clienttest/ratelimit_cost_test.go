package clienttest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

const (
	costRounds  = 5 // in each, both servers get the load for costPeriod
	costPeriod  = 3 * time.Second
	costConns   = 4  // Envoy has one connection of each worker
	costCallers = 16 // of each connection: each waits for an answer before its next request
	costUsers   = 10_000
	// cpuTick is the unit of the processor times in /proc.
	cpuTick = 10 * time.Millisecond
)

// costLimits are hit by all requests. Most requests of the load are over the limit of their user.
const costLimits = `
domain: web
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 20}}
  - {key: path, value: "/api/*", rate_limit: {unit: minute, requests_per_unit: 1000000}}
`

// TestRateLimitServiceCost compares the processor time that weir and envoyproxy/ratelimit with Redis 7 need for a
// request of two descriptors. WEIRTEST_RATELIMIT_COST=1 runs it. For a weir as users have it, also set GOFLAGS= or
// WEIRTEST_BINARY. It judges no figure. With an address in place of 1, it only sends the load there.
func TestRateLimitServiceCost(t *testing.T) {
	to := os.Getenv("WEIRTEST_RATELIMIT_COST")
	if to == "" {
		t.Skip("SKIPPED: measures for a minute; run with WEIRTEST_RATELIMIT_COST=1")
	}
	if to != "1" {
		for range costRounds {
			(&costServer{name: to, addr: to}).measure(t)
		}
		return
	}
	root := t.TempDir()
	dir := filepath.Join(root, "ratelimit", "config")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(costLimits), 0o600))
	memoryOnly := func(line string) bool { return strings.Contains(line, "without a data directory") }
	w := newWeir(t, freeport.Addr(t), memoryOnly, "--data-dir", "", "--rls=127.0.0.1:0", "--envoy-config", dir,
		"--envoy-fields")
	w.Start()
	theirs := startRatelimit(t, root, startRedis(t))
	servers := []*costServer{
		{name: "weir", processes: []string{"weir"}, addr: w.rlsAddr()},
		{name: "envoyproxy/ratelimit", processes: []string{"service_cmd", "redis-server"}, addr: theirs.grpc},
	}
	for range costRounds {
		for _, s := range servers {
			s.measure(t)
		}
	}
	var cost []float64
	for _, s := range servers {
		slices.SortFunc(s.runs, func(a, b costRun) int { return int(a.cpu - b.cpu) })
		m := s.runs[costRounds/2]
		cost = append(cost, float64(m.cpu))
		t.Logf("%-20s %6.0f requests/s, %5.1f µs of processor time a request (%v to %v)", s.name, m.perSecond,
			float64(m.cpu)/1000, s.runs[0].cpu, s.runs[costRounds-1].cpu)
	}
	t.Logf("weir answers %.2f requests in the processor time of one there", cost[1]/cost[0])
}

// costServer is one side of the comparison: a server with its processes, by their names.
type costServer struct {
	name      string
	processes []string
	addr      string
	runs      []costRun
}

type costRun struct {
	perSecond float64
	cpu       time.Duration // of one request
}

// measure sends requests for costPeriod.
func (s *costServer) measure(t *testing.T) {
	var done atomic.Int64
	var callers sync.WaitGroup
	began, before := time.Now(), s.cpu(t)
	for range costConns {
		client := rlsv3.NewRateLimitServiceClient(dialService(t, s.addr))
		for range costCallers {
			callers.Go(func() {
				for time.Since(began) < costPeriod {
					out, err := client.ShouldRateLimit(t.Context(), costRequest())
					if err != nil || len(out.Statuses) != 2 || out.Statuses[0].CurrentLimit == nil ||
						out.Statuses[1].CurrentLimit == nil {
						t.Errorf("%s answers %v, %v", s.name, out, err)
						return
					}
					done.Add(1)
				}
			})
		}
	}
	callers.Wait()
	require.False(t, t.Failed())
	n := done.Load()
	s.runs = append(s.runs, costRun{float64(n) / time.Since(began).Seconds(), (s.cpu(t) - before) / time.Duration(n)})
}

func costRequest() *rlsv3.RateLimitRequest {
	descriptor := func(key, value string) *descriptorv3.RateLimitDescriptor {
		return &descriptorv3.RateLimitDescriptor{
			Entries: []*descriptorv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}}
	}
	return &rlsv3.RateLimitRequest{Domain: "web", Descriptors: []*descriptorv3.RateLimitDescriptor{
		descriptor("user", fmt.Sprintf("user-%d", rand.IntN(costUsers))), descriptor("path", "/api/orders")}}
}

// cpu returns the processor time that the server's processes have used, in the kernel too.
func (s *costServer) cpu(t *testing.T) (sum time.Duration) {
	found := 0
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range all {
		stat, _ := os.ReadFile(path) // a process may just have ended
		_, rest, _ := strings.Cut(string(stat), "(")
		name, rest, _ := strings.Cut(rest, ") ")
		fields := strings.Fields(rest) // from the third on: state, parent, ...
		if len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) || !slices.Contains(s.processes, name) {
			continue
		}
		found++
		for _, ticks := range fields[11:13] {
			n, err := strconv.Atoi(ticks)
			require.NoError(t, err)
			sum += time.Duration(n) * cpuTick
		}
	}
	require.Equal(t, len(s.processes), found, "children of the test named %v", s.processes)
	return sum
}
