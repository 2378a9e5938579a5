package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weir-project/weir/bench"
	"github.com/weir-project/weir/bench/machine"
)

// guardCmd compares two programs of weir.
type guardCmd struct {
	Base     string        `env:"-" required:"" type:"existingfile" placeholder:"FILE" help:"weir of the revision to compare with."`
	Weir     string        `env:"-" type:"existingfile" placeholder:"FILE" help:"weir to judge, instead of the one beside weir-bench or in PATH."`
	BaseName string        `env:"-" default:"base" help:"Name of the base in the report, like a commit."`
	ThisName string        `env:"-" default:"this" help:"Name of the other revision in the report."`
	Scenario []string      `env:"-" placeholder:"NAME" help:"These scenarios of weir-bench --list that have one node of weir, instead of token buckets at -P 128, 16 and 1."`
	Pairs    int           `env:"-" least:"1" default:"16" help:"How often both are started and measured: enough that two disturbed pairs change no verdict."`
	CellTime time.Duration `env:"-" default:"700ms" help:"About how long one measurement lasts."`
	Timeout  time.Duration `env:"-" default:"30m" help:"Bound on the measuring."`
	Dir      string        `env:"-" default:"." type:"existingdir" help:"Where the servers keep data and logs meanwhile, in a directory of the run's own."`
	JSON     string        `env:"-" name:"json" placeholder:"FILE" help:"Write the figures of every pair to this file."`
}

// Run returns no error for a slower revision: only a reader who knows the change can judge its cost.
func (g *guardCmd) Run() error {
	scenarios := bench.GuardScenarios()
	if len(g.Scenario) > 0 {
		var err error
		if scenarios, err = bench.Pick(g.Scenario); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	report, err := g.measure(ctx, scenarios)
	if report == nil {
		return err
	}
	return errors.Join(report.WriteText(os.Stdout), writeFile(os.Stdout, g.JSON, report.WriteJSON), err)
}

// measure runs in a new directory, which it removes. After an error it may still return the pairs before it.
func (g *guardCmd) measure(ctx context.Context, scenarios []bench.Scenario) (report *bench.GuardReport, err error) {
	weir, err := benchTools{Weir: g.Weir}.findWeir()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(g.Dir, "weir-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tell, clearLine := bench.Progress(os.Stderr)
	defer clearLine()
	contenders := bench.Contenders{Tools: bench.Tools{Weir: weir, Base: g.Base}, Dir: dir}
	guard := bench.Guard{Pairs: g.Pairs, Runner: bench.Runner{
		Generator: new(bench.Builtin), Find: contenders.Target, CellTime: g.CellTime, Progress: tell,
	}}
	started, here := time.Now(), machine.This(os.DirFS("/"))
	report, err = guard.Run(ctx, scenarios)
	if report != nil {
		report.Started, report.Machine, report.Base, report.This = started, here, g.BaseName, g.ThisName
	}
	return report, err
}
