package bench

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Load makes the requests of a cell.
type Load interface {
	// Run sends a job's requests and returns when all are answered. An error reply is
	// an error.
	Run(ctx context.Context, job Job) (Outcome, error)
	// CommandLine is what somebody else runs to send the same, for the report.
	CommandLine(job Job) []string
}

// Job is what a Load has to do.
type Job struct {
	Addr     string
	Command  Command
	Scenario Scenario
	Requests int
}

// Outcome is what a Load saw.
type Outcome struct {
	PerSecond float64       // requests answered
	P50Ms     float64       // median latency
	Busy      time.Duration // CPU time of the load generator itself
	Took      time.Duration // from its start to its end
}

// loadTimeout is many times what a cell lasts. redis-benchmark itself waits for ever
// for an answer that does not come.
const loadTimeout = time.Minute

// RedisBenchmark is the load generator that comes with Redis: closed loop, one
// thread.
type RedisBenchmark struct {
	Binary   string
	Patience time.Duration // with one run; 0 means loadTimeout
}

var _ Load = RedisBenchmark{}

// Run implements Load.
func (r RedisBenchmark) Run(ctx context.Context, job Job) (Outcome, error) {
	line := r.CommandLine(job)
	patience, cancel := context.WithTimeoutCause(ctx, cmp.Or(r.Patience, loadTimeout), ErrStuck)
	defer cancel()
	cmd := exec.CommandContext(patience, line[0], line[1:]...)
	started := time.Now()
	out, err := cmd.Output()
	took := time.Since(started)
	if patience.Err() != nil {
		return Outcome{}, fmt.Errorf("%s: %w", strings.Join(line, " "), context.Cause(patience))
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, stderrOf(err))
	}
	outcome, err := parseRedisBenchmark(string(out))
	outcome.Busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	outcome.Took = took
	return outcome, err
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	return strings.TrimSpace(string(exit.Stderr))
}

// CommandLine implements Load.
func (r RedisBenchmark) CommandLine(job Job) []string {
	host, port, err := net.SplitHostPort(job.Addr)
	if err != nil {
		host = job.Addr // redis-benchmark says what is wrong with it
	}
	line := []string{r.Binary, "-h", host, "-p", port,
		"-c", strconv.Itoa(job.Scenario.Clients), "-P", strconv.Itoa(job.Scenario.Pipeline),
		"-r", strconv.Itoa(job.Scenario.Keys), "-n", strconv.Itoa(job.Requests), "--csv"}
	return append(line, job.Command.For(keyPrefix+"__rand_int__")...)
}

// parseRedisBenchmark reads the output of redis-benchmark --csv for one command: a
// line of names, a line of values.
func parseRedisBenchmark(out string) (Outcome, error) {
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		return Outcome{}, fmt.Errorf("%w: %q", ErrLoadOutput, out)
	}
	values := make(map[string]string, len(rows[0]))
	for i, name := range rows[0] {
		values[name] = rows[1][i]
	}
	perSecond, err1 := strconv.ParseFloat(values["rps"], 64)
	p50Ms, err2 := strconv.ParseFloat(values["p50_latency_ms"], 64)
	if err1 != nil || err2 != nil || !(perSecond > 0) {
		return Outcome{}, fmt.Errorf("%w: %q", ErrLoadOutput, out)
	}
	return Outcome{PerSecond: perSecond, P50Ms: p50Ms}, nil
}

// Version asks redis-benchmark for its version.
func (r RedisBenchmark) Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, r.Binary, "--version").Output()
	return strings.TrimSpace(string(out)), err
}
