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

// RedisBenchmark is the load generator of Redis: a closed loop with one or two threads and uniform keys. It does not
// read the content of answers, so a slow prober does.
type RedisBenchmark struct {
	Binary   string
	Patience time.Duration // bound for one run; 0 means loadTimeout. redis-benchmark itself has none
}

var _ Generator = RedisBenchmark{}

// Run implements Generator.
func (r RedisBenchmark) Run(ctx context.Context, job Job) (Outcome, error) {
	if !redisBenchmarkCan(job.Load) {
		return Outcome{}, fmt.Errorf("%w: %s", ErrCannotLoad, job.Load)
	}
	prober := startProber(ctx, job.Addr, job.Commands[job.Load.Workload], job.Load)
	outcome, err := r.run(ctx, job)
	if err != nil {
		prober.abandon() // the server may not answer the prober either
	}
	seen, probeErr := prober.stop()
	if err != nil {
		return Outcome{}, err // the load's error takes precedence, because the prober's may follow from it
	}
	if probeErr != nil {
		return Outcome{}, fmt.Errorf("probing: %w", probeErr)
	}
	outcome.Decisions = job.Requests + seen.asked
	outcome.Read, outcome.Admitted = seen.asked, seen.admitted
	return outcome, nil
}

// redisBenchmarkCan reports whether redis-benchmark supports a load.
func redisBenchmarkCan(l Load) bool {
	return l.PerSecond == 0 && (l.Distribution == Uniform || l.Distribution == OneHot) &&
		l.keyBytes() == usualKeyBytes
}

func (r RedisBenchmark) run(ctx context.Context, job Job) (Outcome, error) {
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
	outcome.Took, outcome.Threads = took, job.Load.By.threads()
	return outcome, err
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	return strings.TrimSpace(string(exit.Stderr))
}

// CommandLine returns the command that sends a job's requests, or nil if redis-benchmark cannot.
func (r RedisBenchmark) CommandLine(job Job) []string {
	if !redisBenchmarkCan(job.Load) {
		return nil
	}
	host, port, err := net.SplitHostPort(job.Addr)
	if err != nil {
		host = job.Addr // redis-benchmark reports the mistake
	}
	keys := job.Load.Keys
	if job.Load.Distribution == OneHot {
		keys = 1
	}
	line := []string{r.Binary, "-h", host, "-p", port}
	if threads := job.Load.By.threads(); threads > 1 {
		line = append(line, "--threads", strconv.Itoa(threads))
	}
	line = append(line,
		"-c", strconv.Itoa(job.Load.Clients), "-P", strconv.Itoa(job.Load.Pipeline),
		"-r", strconv.Itoa(keys), "-n", strconv.Itoa(job.Requests), "--csv")
	return append(line, job.Commands[job.Load.Workload].For(keyPrefix+"__rand_int__")...)
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
	latency, err2 := latencyColumns(values)
	if err1 != nil || err2 != nil || !(perSecond > 0) {
		return Outcome{}, fmt.Errorf("%w: %q", ErrLoadOutput, out)
	}
	return Outcome{PerSecond: perSecond, Latency: latency}, nil
}

// latencyColumns reads the available percentiles, which lack p90 and p99.9.
func latencyColumns(values map[string]string) (l Latency, err error) {
	for name, to := range map[string]*float64{"p50_latency_ms": &l.P50Ms, "p99_latency_ms": &l.P99Ms,
		"max_latency_ms": &l.MaxMs} {
		v, bad := strconv.ParseFloat(values[name], 64)
		*to, err = v, errors.Join(err, bad)
	}
	return l, err
}

// Version asks redis-benchmark for its version.
func (r RedisBenchmark) Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, r.Binary, "--version").Output()
	return strings.TrimSpace(string(out)), err
}
