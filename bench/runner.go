package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// calibrationParts of a cell are enough to tell how many requests fill it, and
	// warm the server up as well.
	calibrationParts = 4
	// calibrationPipelines on each connection take some milliseconds.
	calibrationPipelines = 4
	// overheadPercent is what a cell takes beside its load: starting the load
	// generator, settling.
	overheadPercent = 15
)

// Runner measures targets beside each other.
type Runner struct {
	Load        Load
	Repetitions int           // of each cell
	CellTime    time.Duration // about how long one cell lasts
	Progress    func(Step)    // told before each step; nil for nobody
}

// Step is a piece of a run.
type Step struct {
	Done, Total int // steps
	Scenario    Scenario
	Target      string
}

// Run measures every target in every scenario it has a command for. It starts the
// servers and stops them, also when it fails or ctx ends. A plan that does not fit
// ctx's deadline is refused before anything starts.
func (r *Runner) Run(ctx context.Context, targets []Target, scenarios []Scenario) (report *Report, err error) {
	if err := r.fits(ctx, targets, scenarios); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopAll(targets)) }()
	for _, t := range targets {
		if err := t.Server.Start(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	report = &Report{Started: time.Now(), Repetitions: r.Repetitions, CellTime: r.CellTime.String()}
	if report.Targets, err = contenders(targets); err != nil {
		return nil, err
	}
	step := Step{Total: cells(targets, scenarios) * (r.Repetitions + 1)} // and its calibration
	for _, s := range scenarios {
		rows, err := r.scenario(ctx, entrants(targets, s), s, &step)
		if err != nil {
			return nil, err
		}
		report.Scenarios = append(report.Scenarios, ScenarioReport{Scenario: s, Rows: rows})
	}
	return report, nil
}

// fits checks the plan against the deadline.
func (r *Runner) fits(ctx context.Context, targets []Target, scenarios []Scenario) error {
	deadline, ok := ctx.Deadline()
	parts := r.Repetitions*calibrationParts + 1
	takes := time.Duration(cells(targets, scenarios)*parts) * r.CellTime / calibrationParts
	takes += takes * overheadPercent / 100
	if ok && time.Until(deadline) < takes {
		return fmt.Errorf("%w: it would take about %v; ask for fewer repetitions or shorter cells",
			ErrTooLong, takes.Round(time.Second))
	}
	return nil
}

// scenario prepares the targets, then measures them in turn, repetition by
// repetition.
func (r *Runner) scenario(ctx context.Context, targets []Target, s Scenario, step *Step) ([]Row, error) {
	rows := make([]Row, len(targets))
	requests := make([]int, len(targets))
	for i, t := range targets {
		r.tell(step, s, t)
		if err := prepare(ctx, t, s.Workload); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", t.Name, s.Workload, err)
		}
		rows[i] = Row{Target: t.Name, Script: t.Commands[s.Workload].Script}
		n, err := r.calibrate(ctx, t, s, &rows[i])
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", t.Name, s.Workload, err)
		}
		requests[i] = n
		addr, err := t.Server.Addr(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		rows[i].CommandLine = r.Load.CommandLine(job(addr, t, s, n))
	}
	for range r.Repetitions {
		for i, t := range targets {
			r.tell(step, s, t)
			sample, err := r.undisturbed(ctx, t, s, requests[i], &rows[i])
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.Name, s.Workload, err)
			}
			rows[i].Samples = append(rows[i].Samples, sample)
		}
	}
	summarize(rows)
	return rows, nil
}

// calibrate returns how many requests last about a cell. A first load of a few
// pipelines only tells how long the second must be to be exact.
func (r *Runner) calibrate(ctx context.Context, t Target, s Scenario, row *Row) (int, error) {
	first, err := r.undisturbed(ctx, t, s, calibrationPipelines*s.Requests(0, 0), row)
	if err != nil {
		return 0, err
	}
	second, err := r.undisturbed(ctx, t, s, s.Requests(first.PerSecond, r.CellTime/calibrationParts), row)
	return s.Requests(second.PerSecond, r.CellTime), err
}

func (r *Runner) tell(step *Step, s Scenario, t Target) {
	step.Scenario, step.Target = s, t.Name
	if r.Progress != nil {
		r.Progress(*step)
	}
	step.Done++
}

// entrants are the targets that have a command for a scenario, in their order.
func entrants(targets []Target, s Scenario) []Target {
	var in []Target
	for _, t := range targets {
		if _, ok := t.Commands[s.Workload]; ok {
			in = append(in, t)
		}
	}
	return in
}

// cells is how many pairs of target and scenario there are to measure.
func cells(targets []Target, scenarios []Scenario) int {
	n := 0
	for _, s := range scenarios {
		n += len(entrants(targets, s))
	}
	return n
}

func stopAll(targets []Target) error {
	var errs []error
	for _, t := range targets {
		errs = append(errs, t.Server.Stop())
	}
	return errors.Join(errs...)
}
