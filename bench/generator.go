package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weir-project/weir/bench/machine"
)

// Generator sends the requests of a cell.
type Generator interface {
	// Run sends a job's requests, and returns when all are answered. An error reply is an error.
	Run(ctx context.Context, job Job) (Outcome, error)
}

// Job describes the work of a Generator.
type Job struct {
	Addr     string
	Commands map[Workload]Command
	Load     Load
	Requests int
	// Lasting is the length of a closed loop, for generators that work by time. It replaces Requests unless it is 0.
	Lasting time.Duration
}

// Outcome is the result of a Generator.
type Outcome struct {
	Decisions int     // requests answered, all of them decisions
	Admitted  int     // among the answers whose content was read
	Read      int     // answers whose content was read
	PerSecond float64 // requests answered
	Latency   Latency
	Busy      time.Duration // CPU time of the generator itself
	Took      time.Duration // from its start to its end
	Threads   int           // threads that it can keep busy; 0 for all
	LagP999Ms float64       // how late requests left; open loops only

	histogram *histogram // nil if only percentiles are known
}

// loadTimeout is many times the length of a cell. A load that takes longer misses an answer.
const loadTimeout = time.Minute

// Builtin is the generator of this package. Closed loops use all cores, and open loops use one.
type Builtin struct {
	Patience time.Duration // bound for one run, in addition to its length; 0 means loadTimeout
}

var _ Generator = (*Builtin)(nil)

// Run implements Generator.
func (b *Builtin) Run(ctx context.Context, job Job) (outcome Outcome, err error) {
	patience := cmp.Or(b.Patience, loadTimeout)
	if job.Load.PerSecond > 0 {
		patience += time.Duration(float64(job.Requests) / job.Load.PerSecond * float64(time.Second))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrStuck)
	defer cancel()
	links, err := newSwarm(ctx, job.Addr, sender{job.Load, job.Commands}, newPicker(job.Load))
	if err != nil {
		return Outcome{}, err
	}
	defer links.close()
	if job.Load.Held {
		if err := links.greet(ctx); err != nil {
			return Outcome{}, err
		}
	}
	before, err := machine.CPUTime([]int{os.Getpid()})
	if err != nil {
		return Outcome{}, err
	}
	outcome, err = links.run(ctx, job)
	if err != nil {
		return Outcome{}, err
	}
	after, err := machine.CPUTime([]int{os.Getpid()})
	outcome.Busy = after - before
	return outcome, err
}

// run sends a job's requests, and checks that each is answered.
func (s *swarm) run(ctx context.Context, job Job) (Outcome, error) {
	taken := newRecorders()
	of := func(link int) *recorder { return taken[link%len(taken)] }
	lag := new(histogram)
	pipelines := job.Requests / s.pipeline
	started, sent, threads := time.Now(), pipelines, 0
	var err error
	if job.Load.PerSecond > 0 {
		plan := schedule{perSecond: job.Load.PerSecond, pipelines: pipelines}
		err = s.open(ctx, plan, lag, func(link int, due, came time.Time, answers tally) {
			of(link).record(came.Sub(due), answers)
		})
		threads = 1
	} else {
		if job.Lasting > 0 {
			pipelines = maxRequests
		}
		sent, err = s.closed(ctx, pipelines, job.Lasting, func(link int, took time.Duration, answers tally) {
			of(link).record(took, answers)
		})
	}
	took := time.Since(started)
	if err != nil {
		return Outcome{}, err
	}
	latency, all := merged(taken)
	if err := errors.Join(all.check(sent*s.pipeline), s.surplus()); err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Decisions: int(all.answers), Admitted: int(all.admitted), Read: int(all.answers),
		PerSecond: float64(all.answers) / took.Seconds(), Latency: latencyOf(latency),
		Took: took, Threads: threads, LagP999Ms: msAt(lag, 99.9), histogram: latency,
	}, nil
}

// surplus returns an error if a server has sent more answers than requests.
func (s *swarm) surplus() error {
	for _, l := range s.links {
		if unread := l.in.buf[l.in.r:l.in.w]; len(unread) > 0 {
			return fmt.Errorf("%w: more answers than requests: %.40q", ErrNotADecision, unread)
		}
	}
	return nil
}

// check checks that exactly this many requests were decided.
func (t tally) check(requests int) error {
	if t.errors > 0 {
		return fmt.Errorf("%w: %d of %d requests were answered by an error, the first: %s", ErrNotADecision, t.errors,
			t.answers, t.said)
	}
	if t.answers != int64(requests) {
		return fmt.Errorf("%w: %d answers to %d requests", ErrStuck, t.answers, requests)
	}
	return nil
}
