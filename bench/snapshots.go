package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/bench/machine"
	"github.com/weir-project/weir/bench/servers"
)

// Snapshots measures how writing a snapshot affects the latency of decisions, in a cluster with many keys under a
// steady load.
type Snapshots struct {
	Keys   int
	Rounds int           // each has a snapshot of the leader and one of all nodes at once
	Top    time.Duration // duration of the measurement of the top rate
	Quiet  time.Duration // duration before each snapshot, which determines the number of changes
	// Clients and Pipeline belong to the load. Share is its part of the top rate.
	Clients, Pipeline int
	Share             float64
	Progress          func(Step) // called before each step; may be nil
}

// UsualSnapshots are the snapshots of the cluster's suite. Between two snapshots of a node the load writes as much
// log as triggers an automatic snapshot: some tens of MB.
func UsualSnapshots(keys int) Snapshots {
	return Snapshots{Keys: keys, Rounds: 3, Top: 3 * time.Second, Quiet: 7 * time.Second, Clients: usualClients,
		Pipeline: 16, Share: UsualShare}
}

const (
	// fillPipeline is deep, so that the keys are created quickly.
	fillPipeline = 128
	// UsualShare is the part of the top rate that the steady load has.
	UsualShare = 0.5
	// aftermath is the length of the windows after a snapshot, which are neither part of the snapshot nor quiet.
	aftermath = time.Second
	// stepsARound counts a quiet window and a snapshot, twice.
	stepsARound = 4
)

// load uses limiters that keep their state, takes little from each, and gets no denials.
func (s Snapshots) load() Load {
	return Load{Workload: Lasting, Clients: s.Clients, Pipeline: s.Pipeline, Keys: s.Keys}
}

// swarm connects for a load.
func (s Snapshots) swarm(ctx context.Context, addr string, l Load) (*swarm, error) {
	return newSwarm(ctx, addr, sender{l, weirCommands()}, newPicker(l))
}

// Run starts the cluster, measures, and stops the cluster.
func (s Snapshots) Run(ctx context.Context, c *servers.Cluster) (report *SnapshotReport, err error) {
	defer func() { err = errors.Join(err, c.Stop()) }()
	step := Step{
		Total:    3 + s.Rounds*stepsARound, // start, fill, top rate
		Scenario: "snapshots under load",
	}
	s.tell(&step, "starting")
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	leader, err := c.Addr(ctx)
	if err != nil {
		return nil, err
	}
	s.tell(&step, "filling")
	if err := s.fill(ctx, c, leader); err != nil {
		return nil, fmt.Errorf("filling: %w", err)
	}
	load, err := s.swarm(ctx, leader, s.load())
	if err != nil {
		return nil, err
	}
	defer load.close()
	s.tell(&step, "top rate")
	top, err := load.top(ctx, s.Top)
	if err != nil {
		return nil, fmt.Errorf("finding the top rate: %w", err)
	}
	report = s.newReport(c, top)
	if err := s.underLoad(ctx, c, leader, load, report, &step); err != nil {
		return nil, err
	}
	if now, err := c.Addr(ctx); err != nil || now != leader {
		return nil, errors.Join(ErrMoved, err)
	}
	return report, nil
}

// fill creates the keys, and a first snapshot of them on every node.
func (s Snapshots) fill(ctx context.Context, c *servers.Cluster, leader string) error {
	filling := s.load()
	filling.Pipeline = fillPipeline
	load, err := s.swarm(ctx, leader, filling)
	if err != nil {
		return err
	}
	defer load.close()
	if err := load.fill(ctx, s.Keys); err != nil {
		return err
	}
	if err := haveKeys(leader, s.Keys); err != nil {
		return err
	}
	return servers.AskAll(c.Nodes(), snapshotCommand...)
}

// haveKeys checks that a node holds this many keys.
func haveKeys(addr string, want int) error {
	conn, err := servers.Dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	keys, err := redigo.Int(servers.Do(conn, "DBSIZE"))
	if err == nil && keys != want {
		err = fmt.Errorf("%w: %d keys where %d were made", ErrNotADecision, keys, want)
	}
	return err
}

// underLoad runs the rounds during a steady load, and adds the results to the report.
func (s Snapshots) underLoad(ctx context.Context, c *servers.Cluster, leader string, load *swarm,
	report *SnapshotReport, step *Step) error {
	everyone := append(c.PIDs(), os.Getpid())
	before, err := machine.CPUTimes(everyone)
	if err != nil {
		return err
	}
	started := time.Now()
	seen := &timeline{}
	seen.open(Quiet, started)
	stop, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		plan := schedule{perSecond: report.PerSecond, until: stop}
		err := load.open(ctx, plan, nil,
			func(_ int, due, came time.Time, answers tally) { seen.record(due, came, answers) })
		if err != nil {
			cancel(err) // the rounds would run without a load
		}
		ended <- err
	}()
	err = s.rounds(ctx, c, leader, seen, step)
	close(stop)
	if loadErr := <-ended; loadErr != nil {
		return fmt.Errorf("the load: %w", loadErr)
	}
	if err != nil {
		return err
	}
	seen.close(time.Now())
	after, err := machine.CPUTimes(everyone)
	if err != nil {
		return err
	}
	report.summarize(seen.windows)
	report.charge(before, after, time.Since(started))
	return nil
}

// rounds takes snapshots alternately of the leader and of all nodes. It takes fewer if ctx's deadline is near.
func (s Snapshots) rounds(ctx context.Context, c *servers.Cluster, leader string, seen *timeline, step *Step) error {
	var longest time.Duration
	for round := range s.Rounds {
		began := time.Now()
		if round > 0 && !timeFor(ctx, longest) {
			return nil // fewer rounds are better than none
		}
		for _, turn := range []struct {
			kind WindowKind
			who  []string
		}{{OneSaves, []string{leader}}, {AllSave, c.Nodes()}} {
			seen.open(Quiet, time.Now())
			s.tell(step, string(Quiet))
			if err := wait(ctx, s.Quiet); err != nil {
				return err
			}
			s.tell(step, string(turn.kind)+" snapshot")
			seen.open(turn.kind, time.Now())
			if err := servers.AskTogether(turn.who, snapshotCommand...); err != nil {
				return fmt.Errorf("snapshot: %w", err)
			}
			seen.open(Aftermath, time.Now())
			if err := wait(ctx, aftermath); err != nil {
				return err
			}
		}
		longest = max(longest, time.Since(began))
	}
	return nil
}

// timeFor reports whether ctx lasts for another round as long as the longest so far, and for the end of the run.
func timeFor(ctx context.Context, longest time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > longest+servers.StopTimeout
}

var snapshotCommand = []string{"WEIR.CLUSTER", "SNAPSHOT"}

func (s Snapshots) tell(step *Step, doing string) {
	step.Doing = doing
	if s.Progress != nil {
		s.Progress(*step)
	}
	step.Done++
}

// wait waits for d. If ctx ends earlier, it returns the cause.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
