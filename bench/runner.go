package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Runner measures targets in comparison.
type Runner struct {
	Generator   Generator
	Find        func(name, instance string) (Target, error) // see Contenders
	Repetitions int                                         // of each cell
	CellTime    time.Duration                               // of one cell, roughly; 0: as the deadline allows
	Progress    func(Step)                                  // called before each step; may be nil

	step Step
	cell time.Duration // of the scenario being measured
}

// Step is a piece of a run.
type Step struct {
	Done, Total int // steps
	Scenario    string
	Doing       string
}

// Run measures every scenario. It starts the servers and stops them, also after a failure or the end of ctx. It refuses
// a plan that does not fit ctx's deadline before it starts anything. After an error it still returns the completed
// scenarios.
func (r *Runner) Run(ctx context.Context, scenarios []Scenario) (report *Report, err error) {
	report = &Report{Started: time.Now(), Repetitions: r.Repetitions}
	all, err := r.contests(scenarios, report)
	if err != nil {
		return nil, err
	}
	if r.cell, err = r.plan(ctx, all); err != nil {
		return nil, err
	}
	report.CellTime = r.cell.String()
	for _, c := range all {
		r.step.Total += len(c.cells) * (r.Repetitions + 1) // and its calibration
	}
	for i := range all {
		err := r.next(ctx, all[i:], report)
		if err := errors.Join(err, all[i].stopUnless(all[i+1:])); err != nil {
			return report, errors.Join(err, stopAll(all))
		}
	}
	return report, nil
}

// next measures the first of the remaining contests. If too little time is left and earlier contests have results, it
// omits this contest and keeps those results.
func (r *Runner) next(ctx context.Context, left []contest, report *Report) (err error) {
	// On a machine that is slower than planned, cells are shorter from here on.
	if r.cell, err = r.plan(ctx, left); err == nil {
		var measured ScenarioReport
		if measured, err = r.contest(ctx, &left[0], report); err == nil {
			report.Scenarios = append(report.Scenarios, measured)
			return nil
		}
	}
	outOfTime := errors.Is(err, ErrTooLong) || errors.Is(ctx.Err(), context.DeadlineExceeded)
	if outOfTime && len(report.Scenarios) > 0 {
		report.LeaveOut(left[0].Name, fmt.Errorf("the time limit was reached: %w", err))
		return nil
	}
	return err
}

func stopAll(all []contest) error {
	var errs []error
	for i := range all {
		errs = append(errs, all[i].stopUnless(nil))
	}
	return errors.Join(errs...)
}

// contest starts and prepares the servers, then measures them in turn, repetition by repetition.
func (r *Runner) contest(ctx context.Context, c *contest, report *Report) (ScenarioReport, error) {
	measured := ScenarioReport{Scenario: c.Scenario, CellTime: r.cell.String()}
	if err := c.start(ctx, report); err != nil {
		return measured, err
	}
	if err := r.setRate(ctx, c, &measured); err != nil {
		return measured, fmt.Errorf("%s, its rate: %w", c.Name, err)
	}
	rows, requests := make([]Row, len(c.cells)), make([]int, len(c.cells))
	for i, one := range c.cells {
		r.tell(c.Name, one.Label)
		var err error
		if requests[i], err = r.prepare(ctx, one, &rows[i]); err != nil {
			return measured, fmt.Errorf("%s, %s: %w", c.Name, one.Label, err)
		}
	}
	for range r.Repetitions {
		for i, one := range c.cells {
			r.tell(c.Name, one.Label)
			sample, err := r.undisturbed(ctx, one, requests[i], r.cell, &rows[i])
			if err != nil {
				return measured, fmt.Errorf("%s, %s: %w", c.Name, one.Label, err)
			}
			rows[i].Samples = append(rows[i].Samples, sample)
		}
	}
	summarize(rows)
	measured.Rows = rows
	return measured, nil
}

// prepare readies a cell, describes it in its row, and returns how many requests fill it.
func (r *Runner) prepare(ctx context.Context, c *cell, row *Row) (requests int, err error) {
	if err := c.prepare(ctx); err != nil {
		return 0, err
	}
	if requests, err = r.calibrate(ctx, c, row); err != nil {
		return 0, err
	}
	addr, err := c.target.Server.Addr(ctx)
	if err != nil {
		return 0, err
	}
	row.describe(c, addr, requests)
	return requests, nil
}

// setRate measures the top rate of the entrant that sets the rate of an open loop, and gives all entrants their share
// of it. A scenario without that entrant keeps its closed loop, because it has no rate.
func (r *Runner) setRate(ctx context.Context, c *contest, measured *ScenarioReport) error {
	for _, one := range c.cells {
		if one.Label != c.RateOf {
			continue
		}
		if err := one.prepare(ctx); err != nil {
			return err
		}
		top, err := r.topRate(ctx, one, new(Row))
		if err != nil {
			return err
		}
		for _, all := range c.cells {
			all.Load.PerSecond = top * c.RateShare
		}
		measured.About = fmt.Sprintf("%s, %.3g of the top rate of %s", one.Load, c.RateShare, c.RateOf)
		return nil
	}
	return nil
}

// calibrate returns how many requests last about a cell, and warms the server up.
func (r *Runner) calibrate(ctx context.Context, c *cell, row *Row) (int, error) {
	if at := c.Load.PerSecond; at > 0 {
		_, err := r.undisturbed(ctx, c, c.Load.Requests(at, r.cell/calibrationParts), 0, row)
		return c.Load.Requests(at, r.cell), err
	}
	top, err := r.topRate(ctx, c, row)
	return c.Load.Requests(top, r.cell), err
}

// topRate returns the rate of a closed loop. A first load of a few pipelines determines how long the second load must
// be. redis-benchmark makes both with one thread, because with more it ends at a multiple of 250 ms only.
func (r *Runner) topRate(ctx context.Context, measured *cell, row *Row) (perSecond float64, err error) {
	one := *measured
	c := &one
	if c.Load.By == ByTwoThreads {
		c.Load.By = ByRedisBenchmark
	}
	first, err := r.undisturbed(ctx, c, calibrationPipelines*c.Load.Requests(0, 0), r.cell/calibrationParts, row)
	if err != nil {
		return 0, err
	}
	second, err := r.undisturbed(ctx, c, c.Load.Requests(first.PerSecond, r.cell/calibrationParts),
		r.cell/calibrationParts, row)
	return second.PerSecond, err
}

func (r *Runner) tell(scenario, doing string) {
	r.step.Scenario, r.step.Doing = scenario, doing
	if r.Progress != nil {
		r.Progress(r.step)
	}
	r.step.Done++
}
