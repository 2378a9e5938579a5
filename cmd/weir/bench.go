package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weir-project/weir/bench"
)

const (
	// quickRepetitions and quickCell are for a look at whether a change helped: the
	// figures spread more.
	quickRepetitions = 3
	quickCell        = 500 * time.Millisecond
)

type benchCmd struct {
	Quick       bool          `env:"-" help:"Three repetitions of half a second each."`
	Repetitions int           `env:"-" default:"5" help:"How often each cell is measured: enough that one disturbed repetition does not move the median."`
	CellTime    time.Duration `env:"-" default:"2s" help:"About how long one measurement lasts: long enough to hold a save or two."`
	Timeout     time.Duration `env:"-" default:"5m" help:"Bound on the whole run."`
	Dir         string        `env:"-" default:"." type:"existingdir" help:"Where the servers keep data and logs meanwhile, in a directory of the run's own. Should be on a disk, as weir's data is."`
	JSON        string        `env:"-" name:"json" placeholder:"FILE" help:"Also write everything, each sample and command included, to this file."`
}

// Run measures this very binary beside Redis.
func (b *benchCmd) Run() (err error) {
	if b.Quick {
		b.Repetitions, b.CellTime = quickRepetitions, quickCell
	}
	if b.Repetitions < 1 || b.CellTime <= 0 {
		return errors.New("--repetitions must be at least 1 and --cell-time above 0")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	report, err := b.measure(ctx)
	switch {
	case ctx.Err() == context.Canceled:
		return fmt.Errorf("interrupted: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("--timeout %v is over: %w", b.Timeout, err)
	case err != nil:
		return err
	}
	return errors.Join(report.WriteTable(os.Stdout), b.writeJSON(report))
}

// measure sets the run up in a directory of its own, which it removes.
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
	report, err = runner.Run(ctx, []bench.Target{
		bench.Weir(weir, dir),
		bench.RedisLua(tools.RedisServer, dir),
		bench.RedisSet(tools.RedisServer, dir),
	}, bench.Standard())
	if err != nil {
		return nil, err
	}
	report.Machine, report.LoadGenerator = machine, loadVersion
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
