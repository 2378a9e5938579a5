package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weir-project/weir/bench"
)

// The suite that is not the standard one, and how long a cell and a run of each take unless flags say more.
const (
	clusterSuite = "cluster"

	// standardCell is long enough to hold a save or two; a cluster decides on a disk in
	// each cell anyway, and has more cells.
	standardCell, clusterCell       = 2 * time.Second, 1200 * time.Millisecond
	standardTimeout, clusterTimeout = 5 * time.Minute, 6 * time.Minute
)

const (
	// quickRepetitions and quickCell are for a look at whether a change helped: the
	// figures spread more.
	quickRepetitions = 3
	quickCell        = 500 * time.Millisecond
	quickKeys        = 200_000
	quickRounds      = 1
	quickQuiet       = time.Second
)

type benchCmd struct {
	Suite        string        `env:"-" default:"standard" enum:"standard,cluster" help:"standard: this server beside Redis. cluster: three nodes of it, fsynced, beside Redis and beside themselves alone, and what a snapshot does to latency."`
	Quick        bool          `env:"-" help:"Three repetitions of half a second each, and few keys in snapshots."`
	Repetitions  int           `env:"-" default:"5" help:"How often each cell is measured: enough that one disturbed repetition does not move the median."`
	CellTime     time.Duration `env:"-" help:"About how long one measurement lasts; 2s, or 1.2s in the suite cluster."`
	Timeout      time.Duration `env:"-" help:"Bound on the whole run; 5m, or 6m in the suite cluster."`
	SnapshotKeys int           `env:"-" default:"5000000" help:"Keys in the snapshots of the suite cluster; 0 leaves that part out."`
	Dir          string        `env:"-" default:"." type:"existingdir" help:"Where the servers keep data and logs meanwhile, in a directory of the run's own. Should be on a disk, as weir's data is."`
	JSON         string        `env:"-" name:"json" placeholder:"FILE" help:"Also write everything, each sample and command included, to this file."`
}

// Run measures this very binary beside Redis.
func (b *benchCmd) Run() (err error) {
	b.complete()
	if b.Repetitions < 1 || b.CellTime <= 0 || b.SnapshotKeys < 0 {
		return errors.New("--repetitions must be at least 1, --cell-time above 0 and --snapshot-keys not below")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	report, err := b.measure(ctx)
	switch {
	case ctx.Err() == context.Canceled:
		err = fmt.Errorf("interrupted: %w", err)
	case ctx.Err() != nil && err != nil:
		err = fmt.Errorf("--timeout %v is over: %w", b.Timeout, err)
	}
	if report == nil {
		return err
	}
	return errors.Join(report.WriteTable(os.Stdout), b.writeJSON(report), err)
}

// complete fills in what the flags left open.
func (b *benchCmd) complete() {
	cell, timeout := standardCell, standardTimeout
	if b.Suite == clusterSuite {
		cell, timeout = clusterCell, clusterTimeout
	}
	b.CellTime, b.Timeout = cmp.Or(b.CellTime, cell), cmp.Or(b.Timeout, timeout)
	if b.Quick {
		b.Repetitions, b.CellTime = quickRepetitions, quickCell
		b.SnapshotKeys = min(b.SnapshotKeys, quickKeys)
	}
}

// measure sets the run up in a directory of its own, which it removes. With an error
// it may still return what was measured before.
func (b *benchCmd) measure(ctx context.Context) (report *bench.Report, err error) {
	tools, err := bench.FindTools()
	if err != nil {
		return nil, err
	}
	weir, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.Dir, "weir-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	load := bench.RedisBenchmark{Binary: tools.RedisBenchmark}
	loadVersion, err := load.Version(ctx)
	if err != nil {
		return nil, err
	}
	machine := bench.ThisMachine(os.DirFS("/"))
	tell, clearLine := bench.Progress(os.Stderr)
	defer clearLine()
	runner := bench.Runner{Load: load, Repetitions: b.Repetitions, CellTime: b.CellTime, Progress: tell}
	if b.Suite == clusterSuite {
		report, err = b.cluster(ctx, &runner, weir, tools.RedisServer, dir)
	} else {
		report, err = runner.Run(ctx, []bench.Target{
			bench.Weir(weir, dir),
			bench.RedisLua(tools.RedisServer, dir),
			bench.RedisSet(tools.RedisServer, dir),
		}, bench.Standard())
	}
	if report != nil {
		report.Machine, report.LoadGenerator = machine, loadVersion
	}
	return report, err
}

// cluster runs the suite of that name. What it found before the snapshots is worth
// having also when they fail.
func (b *benchCmd) cluster(ctx context.Context, runner *bench.Runner, weir, redisServer, dir string) (*bench.Report, error) {
	fsync, err := bench.FsyncMicros(dir)
	if err != nil {
		return nil, err
	}
	report, err := runner.Run(ctx, bench.ClusterTargets(weir, redisServer, dir), bench.ClusterSuite())
	if err != nil {
		return nil, err
	}
	report.FsyncMicros = fsync
	report.Compare(bench.ClusterGoals())
	if b.SnapshotKeys == 0 {
		return report, nil
	}
	snapshots := bench.UsualSnapshots(b.SnapshotKeys)
	if b.Quick {
		snapshots.Rounds, snapshots.Quiet = quickRounds, quickQuiet
	}
	snapshots.Progress = runner.Progress
	report.Snapshots, err = snapshots.Run(ctx, bench.SnapshotCluster(weir, dir))
	if err != nil {
		return report, fmt.Errorf("snapshots under load: %w", err)
	}
	return report, nil
}

func (b *benchCmd) writeJSON(report *bench.Report) error {
	if b.JSON == "" {
		return nil
	}
	f, err := os.Create(b.JSON)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteJSON(f), f.Close())
}
