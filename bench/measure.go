package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// prepare empties a server, loads the script of a workload and makes sure that its
// command decides.
func prepare(ctx context.Context, t Target, w Workload) error {
	addr, err := t.Server.Addr(ctx)
	if err != nil {
		return err
	}
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := do(conn, "FLUSHALL"); err != nil {
		return err
	}
	command := t.Commands[w]
	if command.Script != "" {
		if _, err := do(conn, "SCRIPT", "LOAD", command.Script); err != nil {
			return err
		}
	}
	return verify(conn, command)
}

// settle makes every node of a server finish what it put off.
func settle(t Target) error {
	if len(t.Settle) == 0 {
		return nil
	}
	return askAll(t.Server.Nodes(), t.Settle...)
}

func job(addr string, t Target, s Scenario, requests int) Job {
	return Job{Addr: addr, Command: t.Commands[s.Workload], Scenario: s, Requests: requests}
}

// measure loads one target once. The server's CPU is read before the load and after
// it has settled: what it put off is part of what a decision costs, and must not be
// billed to the next load.
func measure(ctx context.Context, load Load, t Target, s Scenario, requests int) (Sample, error) {
	addr, err := t.Server.Addr(ctx)
	if err != nil {
		return Sample{}, err
	}
	before, err := cpuTime(t.Server.PIDs())
	if err != nil {
		return Sample{}, err
	}
	prober := startProber(ctx, addr, t.Commands[s.Workload], s.Keys)
	outcome, err := load.Run(ctx, job(addr, t, s, requests))
	seen, probeErr := prober.stop()
	if err != nil {
		return Sample{}, err // the load's error comes first: the prober's may follow from it
	}
	if probeErr != nil {
		return Sample{}, fmt.Errorf("probing: %w", probeErr)
	}
	if err := settle(t); err != nil {
		return Sample{}, fmt.Errorf("settling: %w", err)
	}
	after, err := cpuTime(t.Server.PIDs())
	if err != nil {
		return Sample{}, err
	}
	if now, err := t.Server.Addr(ctx); err != nil || now != addr {
		return Sample{}, errors.Join(ErrMoved, err)
	}
	return Sample{
		Requests:      requests,
		PerSecond:     outcome.PerSecond,
		P50Ms:         outcome.P50Ms,
		CPUMicros:     perDecision(after-before, requests+seen.asked),
		Probed:        seen.asked,
		Admitted:      seen.admitted,
		GeneratorBusy: outcome.Busy.Seconds() / outcome.Took.Seconds(),
	}, ctx.Err()
}

// perDecision is a time shared among decisions, in microseconds.
func perDecision(d time.Duration, decisions int) float64 {
	return float64(d) / float64(time.Microsecond) / float64(decisions)
}

// contenders asks each running server what it is.
func contenders(targets []Target) ([]Contender, error) {
	var all []Contender
	var errs []error
	for _, t := range targets {
		version, err := serverVersion(t.Server.Nodes()[0])
		errs = append(errs, err)
		all = append(all, Contender{Name: t.Name, Version: version, CommandLines: t.Server.CommandLines()})
	}
	return all, errors.Join(errs...)
}
