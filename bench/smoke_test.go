package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/servers"
	"github.com/weir-project/weir/internal/weirbin"
)

func needTools(t *testing.T) Tools {
	tools := FindTools("")
	if tools.RedisServer == "" || tools.RedisBenchmark == "" {
		t.Skip("needs redis-server and redis-benchmark to compare with; ", redisHint)
	}
	return tools
}

// binDir is the directory of the weir that buildWeir builds.
var binDir string

// builtWeir is built once, for the first test that needs it.
var builtWeir = sync.OnceValues(func() (string, error) { return weirbin.Build(binDir) })

func TestMain(m *testing.M) { os.Exit(runWithBinDir(m)) }

func runWithBinDir(m *testing.M) int {
	var err error
	if binDir, err = os.MkdirTemp("", "weir-bench-test-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(binDir)
	return m.Run()
}

func buildWeir(t *testing.T) string {
	program, err := builtWeir()
	require.NoError(t, err)
	return program
}

// pidsOf wraps a server and records its processes after each start.
type pidsOf struct {
	servers.Server
	pids map[int]bool
}

func (p pidsOf) Start(ctx context.Context) error {
	if err := p.Server.Start(ctx); err != nil {
		return err
	}
	for _, pid := range p.PIDs() {
		p.pids[pid] = true
	}
	return nil
}

func (p pidsOf) Unwrap() servers.Server { return p.Server }

// realRun measures real servers, and records their processes.
type realRun struct {
	runner *Runner
	pids   map[int]bool
}

func newRealRun(t *testing.T, repetitions int, cell time.Duration) *realRun {
	tools := needTools(t)
	tools.Weir = buildWeir(t)
	contenders := &Contenders{Tools: tools, Dir: t.TempDir()}
	r := &realRun{pids: make(map[int]bool)}
	r.runner = &Runner{Generator: new(Builtin), Repetitions: repetitions, CellTime: cell, Find: contenders.Target}
	find := r.runner.Find
	r.runner.Find = func(name, instance string) (Target, error) {
		target, err := find(name, instance)
		if _, follows := target.Server.(servers.Follower); !follows && err == nil {
			target.Server = pidsOf{target.Server, r.pids}
		}
		return target, err
	}
	return r
}

// requireGone checks that this many processes were started, and that all of them ended.
func (r *realRun) requireGone(t *testing.T, started int) {
	require.Len(t, r.pids, started)
	for pid := range r.pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is gone", pid)
	}
}

func TestSmokeComparesForReal(t *testing.T) {
	r := newRealRun(t, 2, 300*time.Millisecond) // in which a busy machine answers something, too
	small := Load{Workload: TokenBucket, Clients: 5, Pipeline: 16, Keys: 1000}
	log, filled := small, kept(5000)
	log.Workload = SlidingLog
	open := beside("open", small, weirName, luaName)
	open.RateOf, open.RateShare = luaName, 0.1
	report, err := r.runner.Run(context.Background(), []Scenario{
		beside("small", small, weirName, luaName, setName, replicasName, crabName, cellName),
		beside("log", log, weirName, luaName), open,
		beside("filled", filled, weirName, luaName),
	})
	require.NoError(t, err)

	require.GreaterOrEqual(t, len(report.Scenarios[0].Rows), 4)
	require.Regexp(t, `^weir .+`, report.Targets[0].Version)
	require.Regexp(t, `^(redis|valkey) \d+\.`, report.Targets[1].Version)
	for _, s := range report.Scenarios {
		for _, row := range s.Rows {
			require.Len(t, row.Samples, 2)
			require.Positive(t, row.Figures[Rate].Min)
			require.Positive(t, row.FirstOverThis.Min)
			require.Positive(t, row.AdmittedShare)
			require.LessOrEqual(t, row.Figures[P50].Median, row.Figures[Slowest].Max)
		}
	}
	require.Positive(t, report.Scenarios[2].Rows[0].Load.PerSecond)
	require.Nil(t, report.Scenarios[2].Rows[0].CommandLine, "redis-benchmark keeps to no rate")
	require.NotZero(t, report.Scenarios[3].Rows[1].Figures[BytesPerKey].Median)
	require.GreaterOrEqual(t, len(r.pids), 1+1+1+3+2)
	r.requireGone(t, len(r.pids))
	for _, write := range []func(io.Writer) error{report.WriteTable, report.WriteJSON, report.WriteMarkdown} {
		require.NoError(t, write(io.Discard))
	}
}

// TestScriptsLimit checks that the scripts enforce the limits of their workload. Otherwise the comparison would be
// unfair.
func TestScriptsLimit(t *testing.T) {
	tools := needTools(t)
	contenders := Contenders{Tools: tools, Dir: t.TempDir()}
	target, err := contenders.Target(luaName, "")
	require.NoError(t, err)
	require.NoError(t, target.Server.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, target.Server.Stop()) })
	addr := target.Server.Nodes()[0]
	conn, err := call(addr)
	require.NoError(t, err)
	defer conn.conn.Close()
	for workload, c := range map[Workload]struct {
		limit     int     // in units
		givesBack float64 // units a second, during the test
	}{TokenBucket: {20, 10}, SlidingLog: {100, 0}, Denied: {1, 0}} {
		require.NoError(t, prepareCommand(addr, target.Commands[workload], workload))
		started, units := time.Now(), 0
		for {
			ok, err := conn.ask(target.Commands[workload], fmt.Sprint(workload))
			require.NoError(t, err)
			if !ok {
				break
			}
			units++
		}
		givenBack := int(math.Ceil(c.givesBack * time.Since(started).Seconds()))
		require.GreaterOrEqual(t, units, c.limit, workload)
		require.LessOrEqual(t, units, c.limit+givenBack, workload)
	}
}

func TestProcessSaysWhyItIsNotReady(t *testing.T) {
	tools := needTools(t)
	log := filepath.Join(t.TempDir(), "log")
	server := &servers.Process{Binary: tools.RedisServer,
		Args: []string{"--port", servers.PortPlaceholder, "--no-such-directive", "1"}, LogFile: log}
	err := server.Start(context.Background())
	require.ErrorIs(t, err, servers.ErrNotReady)
	require.ErrorContains(t, err, "no-such-directive")
	require.NoError(t, server.Stop(), "stopping twice is harmless")
}

func TestStopOfWhatNeverStarted(t *testing.T) {
	server := &servers.Process{Binary: filepath.Join(t.TempDir(), "none"), LogFile: filepath.Join(t.TempDir(), "log")}
	require.ErrorIs(t, server.Start(context.Background()), os.ErrNotExist)
	require.NoError(t, server.Stop())
}
