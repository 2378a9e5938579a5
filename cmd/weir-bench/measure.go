package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/weir-project/weir/bench"
	"github.com/weir-project/weir/bench/machine"
	"github.com/weir-project/weir/internal/cli/buildinfo"
)

const (
	// quickRepetitions and quickCell are for a quick check of a change. The results spread more.
	quickRepetitions = 3
	quickCell        = 500 * time.Millisecond
	quickKeys        = 200_000
	quickRounds      = 1
	quickQuiet       = time.Second
	// quickTimeout is long enough for quick cells of the longest suite.
	quickTimeout = 30 * time.Minute
	// longTimeout is for the long suites. Filling ten million keys through scripts takes minutes each time.
	longTimeout = 90 * time.Minute
)

// lastStop is how long stopping servers and writing reports may take after a run's time limit.
const lastStop = 15 * time.Second

// timeouts are the default time limits of the suites.
var timeouts = map[string]time.Duration{
	bench.StandardSuite: 5*time.Minute - lastStop, bench.ClusterSuite: 6*time.Minute - lastStop,
	bench.RivalsSuite: 15*time.Minute - lastStop, bench.StandaloneSuite: longTimeout,
	bench.GrowthSuite: longTimeout, bench.FullSuite: longTimeout, bench.SnapshotsSuite: longTimeout,
}

// measureCmd measures.
type measureCmd struct {
	Suite        string        `env:"-" default:"standard" enum:"standard,standalone,cluster,rivals,snapshots,growth,full" help:"standard: this server beside Redis. standalone: the same and other loads, ten million keys. cluster: three nodes, fsynced, beside Redis and beside one node, and what a snapshot does to latency. snapshots: the last of that alone. growth: more keys, connections, pipelining, nodes. rivals: token buckets of all rivals, at three depths and under three load generators; see --rivals. full: all of it but the rivals, in about an hour."`
	Scenario     []string      `env:"-" placeholder:"NAME" help:"Only these scenarios, whatever their suite."`
	Target       []string      `env:"-" placeholder:"NAME" help:"Only these targets, like weir or redis+lua; the first is what others are compared with."`
	List         bool          `env:"-" help:"List scenarios and targets, and measure nothing."`
	Quick        bool          `env:"-" help:"Three repetitions of half a second each, and few keys in snapshots."`
	Repetitions  int           `env:"-" least:"1" default:"5" help:"How often each cell is measured: enough that one disturbed repetition does not move the median."`
	CellTime     time.Duration `env:"-" help:"About how long one measurement lasts; what fits the time limit, at most 2s."`
	Timeout      time.Duration `env:"-" help:"Bound on the measuring; short of 5m, of 6m for the suite cluster, 90m for longer ones."`
	SnapshotKeys int           `env:"-" default:"5000000" help:"Keys in the snapshots of the suite cluster; 0 leaves that part out."`
	SnapshotLoad float64       `env:"-" default:"0.5" help:"The load beside snapshots, as a share of the highest rate found: above 0, at most 1."`
	Dir          string        `env:"-" default:"." type:"existingdir" help:"Where the servers keep data and logs meanwhile, in a directory of the run's own. Should be on a disk, as weir's data is."`

	benchLoad    `embed:"" group:"Loads, in every chosen scenario:"`
	benchTools   `embed:"" group:"Contenders:"`
	benchOutputs `embed:"" group:"Reports:"`
}

// Run measures weir and other rate limiters.
func (m *measureCmd) Run() (err error) {
	if err := m.complete(); err != nil {
		return err
	}
	scenarios, err := m.scenarios()
	if err != nil || m.List {
		return errors.Join(err, list(os.Stdout, scenarios))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	report, err := m.measure(ctx, scenarios)
	switch {
	case ctx.Err() == context.Canceled:
		err = fmt.Errorf("interrupted: %w", err)
	case ctx.Err() != nil && err != nil:
		err = fmt.Errorf("--timeout %v is over: %w", m.Timeout, err)
	}
	if report == nil {
		return err
	}
	return errors.Join(report.WriteTable(os.Stdout), m.benchOutputs.write(os.Stdout, report, err), err)
}

// complete sets defaults for missing flags.
func (m *measureCmd) complete() error {
	if m.Timeout == 0 {
		m.Timeout = timeouts[m.Suite]
		if m.Quick {
			m.Timeout = max(m.Timeout, quickTimeout)
		}
		if len(m.Scenario) > 0 {
			m.Timeout = longTimeout
		}
	}
	if m.Quick {
		m.Repetitions, m.SnapshotKeys = quickRepetitions, min(m.SnapshotKeys, quickKeys)
		if m.CellTime == 0 {
			m.CellTime = quickCell
		}
	}
	if !(m.SnapshotLoad > 0 && m.SnapshotLoad <= 1) {
		return errors.New("--snapshot-load must be above 0 and at most 1")
	}
	return nil
}

// measure runs in a new directory, which it removes. After an error it may still return earlier results.
func (m *measureCmd) measure(ctx context.Context, scenarios []bench.Scenario) (report *bench.Report, err error) {
	tools, err := m.benchTools.find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(m.Dir, "weir-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	generator, name, err := m.generator(ctx, tools)
	if err != nil {
		return nil, err
	}
	here := machine.This(os.DirFS("/"))
	fsync, err := machine.FsyncMicros(dir)
	if err != nil {
		return nil, err
	}
	tell, clearLine := bench.Progress(os.Stderr)
	defer clearLine()
	contenders := bench.Contenders{Tools: tools, Dir: dir}
	runner := bench.Runner{
		Generator: generator, Find: contenders.Target, Repetitions: m.Repetitions, CellTime: m.CellTime, Progress: tell,
	}
	report, err = m.parts(ctx, &runner, scenarios, tools.Weir, dir)
	if report != nil {
		report.Machine, report.Generator, report.FsyncMicros = here, name, fsync
		report.Command = append([]string{"weir-bench"}, os.Args[1:]...)
		report.Judge(bench.Goals())
	}
	return report, err
}

// generator returns the load generator, and its name for the report.
func (m *measureCmd) generator(ctx context.Context, tools bench.Tools) (bench.Generator, string, error) {
	load := bench.RedisBenchmark{Binary: tools.RedisBenchmark}
	all := bench.Generators{bench.OurGenerator: new(bench.Builtin)}
	if tools.RedisBenchmark != "" {
		all[bench.ByRedisBenchmark], all[bench.ByTwoThreads] = load, load
	}
	if m.Generator == "weir" {
		return all, "load by weir-bench " + buildinfo.Read().Version, nil
	}
	if tools.RedisBenchmark == "" {
		return nil, "", fmt.Errorf("redis-benchmark %w", bench.ErrToolMissing)
	}
	all[bench.OurGenerator] = load
	name, err := load.Version(ctx)
	return all, "load by " + name, err
}

// snapshotShare is the part of the cluster suite's time for snapshots: filling a cluster with millions of keys, and
// rounds of seconds.
const snapshotShare = 0.45

// parts measures the scenarios, and then the effect of snapshots. The results of either are useful without the other.
func (m *measureCmd) parts(
	ctx context.Context, runner *bench.Runner, scenarios []bench.Scenario, weir, dir string,
) (*bench.Report, error) {
	if !m.snapshotsWanted() {
		return runner.Run(ctx, scenarios)
	}
	deadline, _ := ctx.Deadline()
	forSnapshots := min(time.Duration(float64(m.Timeout)*snapshotShare), mostForSnapshots)
	first, cancel := context.WithDeadline(ctx, deadline.Add(-forSnapshots))
	defer cancel()
	report, err := runner.Run(first, scenarios)
	if report == nil || ctx.Err() != nil {
		return report, err
	}
	snapshots := bench.UsualSnapshots(m.SnapshotKeys)
	snapshots.Share = m.SnapshotLoad
	if m.Quick {
		snapshots.Rounds, snapshots.Quiet = quickRounds, quickQuiet
	}
	snapshots.Progress = runner.Progress
	var snapshotErr error
	report.Snapshots, snapshotErr = snapshots.Run(ctx, bench.SnapshotCluster(weir, dir))
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && snapshotErr != nil:
		report.LeaveOut("snapshots under load", fmt.Errorf("the time limit was reached: %w", snapshotErr))
	case snapshotErr != nil:
		err = errors.Join(err, fmt.Errorf("snapshots under load: %w", snapshotErr))
	}
	return report, err
}

// mostForSnapshots is enough for all rounds with millions of keys.
const mostForSnapshots = 5 * time.Minute

// snapshotsWanted reports whether the run has a whole suite that includes snapshots.
func (m *measureCmd) snapshotsWanted() bool {
	return m.SnapshotKeys > 0 && len(m.Scenario) == 0 && len(m.Target) == 0 &&
		slices.Contains([]string{bench.ClusterSuite, bench.SnapshotsSuite, bench.FullSuite}, m.Suite)
}
