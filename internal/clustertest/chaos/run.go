package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// leaderTimeout is how long a healthy cluster may take to elect a leader: many times the server's default timings, on a
// machine that runs all nodes and clients.
const leaderTimeout = 30 * time.Second

// RunConfig describes a run.
type RunConfig struct {
	Cluster  ClusterConfig
	Duration time.Duration // of the traffic
	Seed     uint64
	Orderly  bool     // end with SIGTERM instead of kill -9, because a standalone server promises no more
	Plans    [][]Step // run at the same time
	// Meanwhile, if set, runs during the traffic and ends with it.
	Meanwhile func(context.Context, *Cluster) error
	Spenders  int  // clients that cross thresholds; 0: none, because the program may be older
	Restless  bool // faults follow too quickly for a judgement of usefulness
	// Patient gives all callers long timeouts, so that a timeout is never due to a slow machine.
	Patient bool
	Logf    func(format string, args ...any) // reports events as they happen
}

// run is one run.
type run struct {
	cfg        RunConfig
	cluster    *Cluster
	work       *Workload
	watch      *Watch
	violations *Violations
	mu         sync.Mutex
	faults     map[Kind]int   // guarded by mu
	selfStops  map[string]int // by reason, guarded by mu
	skipped    []string
}

// Run starts a cluster, runs clients while faults are injected, ends all faults, kills and restarts the cluster once
// more, and judges. An error means that the run itself failed. Violations are in the report.
func Run(ctx context.Context, cfg RunConfig) (*Report, error) {
	r := &run{cfg: cfg, violations: &Violations{}, faults: map[Kind]int{}, selfStops: map[string]int{}}
	cfg.Cluster.OnExit = r.exited
	cluster, err := NewCluster(cfg.Cluster)
	if cluster != nil {
		defer cluster.Close()
	}
	if err != nil {
		return nil, err
	}
	r.cluster = cluster
	r.mountDisk()
	if err := cluster.StartAll(); err != nil {
		return nil, err
	}
	if _, err := cluster.Leader(ctx, leaderTimeout); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, cluster.Nodes[0].LogTail())
	}
	r.work = NewWorkload(cluster.Addrs(), cfg.Seed, r.violations)
	if cluster.Groups > 1 {
		r.work.Books.ByGroup()
	}
	r.work.spread = cluster.Replicas > 0
	if cfg.Spenders > 0 {
		r.work.Spending = NewSpending(cfg.Spenders, cluster.Groups)
	}
	if cfg.Patient {
		r.work.quick = patientTimeout
	}
	r.watch = &Watch{cluster: cluster, start: r.work.start, violations: r.violations}
	r.work.leads = r.watch.Leader
	r.storm(ctx)
	if err := r.calm(ctx); err != nil {
		return nil, err
	}
	r.work.Judge(r.keep)
	return r.report(), nil
}

// mountDisk gives the last node a disk that can be filled, if a plan fills it.
func (r *run) mountDisk() {
	fills := func(s Step) bool { return s.Kind == FillDisk }
	if !slices.ContainsFunc(slices.Concat(r.cfg.Plans...), fills) {
		return
	}
	disk, err := MountSmallDisk(r.cluster.Nodes[len(r.cluster.Nodes)-1].Dir)
	if err == nil {
		r.cluster.Disk = disk
		return
	}
	r.skipped = append(r.skipped, fmt.Sprintf("%s: %v", FillDisk, err))
	for i, plan := range r.cfg.Plans {
		r.cfg.Plans[i] = slices.DeleteFunc(slices.Clone(plan), fills)
	}
}

// storm runs the traffic and the faults.
func (r *run) storm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Duration)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { r.work.Run(ctx) })
	all.Go(func() { r.watch.Run(ctx) })
	for _, plan := range r.cfg.Plans {
		all.Go(func() { r.carryOut(ctx, plan) })
	}
	if r.cfg.Meanwhile != nil {
		all.Go(func() {
			r.violations.Add("meanwhile", r.cfg.Meanwhile(ctx, r.cluster))
			r.cfg.Duration = time.Since(r.work.start)
			cancel()
		})
	}
	all.Wait()
}

// carryOut runs one plan. A node that does not withstand a fault as specified is a violation, and the plan continues.
// After a fault that took longer than planned, all others come later by as much, so that the calm between them is kept.
func (r *run) carryOut(ctx context.Context, plan []Step) {
	late := time.Duration(0)
	for _, step := range plan {
		if sleep(ctx, step.At+late-time.Since(r.work.start)) != nil {
			return
		}
		r.cfg.Logf("%v", step)
		r.violations.Add(string(step.Kind), r.cluster.Do(ctx, step))
		r.mu.Lock()
		r.faults[step.Kind]++
		r.mu.Unlock()
		late = max(late, time.Since(r.work.start)-step.At-step.For)
	}
}

// calm restarts the whole cluster once more, so that the counted state was recovered from disk. It then asks for the
// remaining units and compares the replicas.
func (r *run) calm(ctx context.Context) error {
	if err := r.restart(ctx); err != nil {
		return err
	}
	if _, err := r.cluster.Leader(ctx, leaderTimeout); err != nil {
		r.violations.Add("cluster", err)
		return nil
	}
	r.work.Settle()
	if len(r.cluster.Nodes) > 1 {
		r.violations.Add("replicas", r.compare(ctx))
	}
	return nil
}

func (r *run) restart(ctx context.Context) error {
	if r.cfg.Orderly {
		return r.cluster.Roll(ctx)
	}
	r.cluster.KillAll()
	return r.cluster.StartAll()
}

// keep writes a whole history next to the nodes' logs.
func (r *run) keep(name string, history fmt.Stringer) {
	file := strings.ReplaceAll(name, ":", "-") + ".history"
	if err := os.WriteFile(filepath.Join(r.cfg.Cluster.Dir, file), []byte(history.String()), 0o644); err != nil {
		r.cfg.Logf("history of %s: %v", name, err)
	}
}
