package bench

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func needTools(t *testing.T) Tools {
	tools, err := FindTools()
	if err != nil {
		t.Skip("needs Redis to compare with: ", err)
	}
	return tools
}

func buildWeir(t *testing.T) string {
	binary := filepath.Join(t.TempDir(), "weir")
	out, err := exec.Command("go", "build", "-o", binary, "../cmd/weir").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// pidsOf starts nothing: it remembers the processes while the run still has them.
type pidsOf struct {
	Server
	pids *[]int
}

func (p pidsOf) Start(ctx context.Context) error {
	if err := p.Server.Start(ctx); err != nil {
		return err
	}
	*p.pids = append(*p.pids, p.PIDs()...)
	return nil
}

func TestSmokeComparesForReal(t *testing.T) {
	tools := needTools(t)
	dir := t.TempDir()
	targets := []Target{Weir(buildWeir(t), dir), RedisLua(tools.RedisServer, dir), RedisSet(tools.RedisServer, dir)}
	var pids []int
	for i := range targets {
		targets[i].Server = pidsOf{targets[i].Server, &pids}
	}
	scenarios := []Scenario{{TokenBucket, 5, 16, 1000}, {SlidingLog, 5, 16, 1000}}
	runner := Runner{Load: RedisBenchmark{Binary: tools.RedisBenchmark}, Repetitions: 2, CellTime: 100 * time.Millisecond}
	report, err := runner.Run(context.Background(), targets, scenarios)
	require.NoError(t, err)

	require.Len(t, report.Scenarios[0].Rows, 3)
	require.Len(t, report.Scenarios[1].Rows, 2)
	require.Regexp(t, `^weir .+`, report.Targets[0].Version)
	require.Regexp(t, `^(redis|valkey) \d+\.`, report.Targets[1].Version)
	for _, s := range report.Scenarios {
		for _, row := range s.Rows {
			require.Len(t, row.Samples, 2)
			require.Positive(t, row.PerSecond.Min)
			require.Positive(t, row.FirstOverThis.Min)
			require.Positive(t, row.Samples[0].Probed)
			require.Positive(t, row.AdmittedShare)
		}
	}
	require.Len(t, pids, 3)
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is gone", pid)
	}
}

// The scripts limit as their workload says, or the comparison would be with
// something else.
func TestScriptsLimit(t *testing.T) {
	tools := needTools(t)
	target := RedisLua(tools.RedisServer, t.TempDir())
	require.NoError(t, target.Server.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, target.Server.Stop()) })
	conn, err := dial(target.Server.Nodes()[0])
	require.NoError(t, err)
	defer conn.Close()
	for workload, c := range map[Workload]struct {
		limit     int
		givesBack float64 // units a second, while the test asks
	}{TokenBucket: {20, 10}, SlidingLog: {100, 0}} {
		require.NoError(t, prepare(context.Background(), target, workload))
		started := time.Now()
		admitted := 0
		for {
			ok, err := ask(conn, target.Commands[workload], "key:1")
			require.NoError(t, err)
			if !ok {
				break
			}
			admitted++
		}
		givenBack := int(math.Ceil(c.givesBack * time.Since(started).Seconds()))
		require.GreaterOrEqual(t, admitted, c.limit, workload)
		require.LessOrEqual(t, admitted, c.limit+givenBack, workload)
	}
}

func TestProcessSaysWhyItIsNotReady(t *testing.T) {
	tools := needTools(t)
	log := filepath.Join(t.TempDir(), "log")
	server := &Process{Binary: tools.RedisServer, Args: []string{"--port", portPlaceholder, "--no-such-directive", "1"}, LogFile: log}
	err := server.Start(context.Background())
	require.ErrorIs(t, err, ErrNotReady)
	require.ErrorContains(t, err, "no-such-directive")
	require.NoError(t, server.Stop(), "stopping twice is harmless")
}

func TestStopOfWhatNeverStarted(t *testing.T) {
	server := &Process{Binary: filepath.Join(t.TempDir(), "none"), LogFile: filepath.Join(t.TempDir(), "log")}
	require.ErrorIs(t, server.Start(context.Background()), os.ErrNotExist)
	require.NoError(t, server.Stop())
}
