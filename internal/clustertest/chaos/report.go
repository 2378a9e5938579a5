package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// Report is the result of a run.
type Report struct {
	Seed       uint64
	Nodes      int
	Duration   time.Duration
	Faults     map[Kind]int
	Refused    int64          // damaged logs that nodes have refused with the reason
	Moved      int64          // replicas
	Kills      int64          // during moves, of nodes and of the operator's command
	SelfStops  map[string]int // nodes that stopped by themselves and may be restarted, by reason
	Skipped    []string       // faults that are not possible on this machine, with the reason
	Totals     Totals
	Useful     Usefulness
	Leaderless time.Duration // in total
	NoLeader   time.Duration // at the longest
	Keys       int           // histories that porcupine judged
	Operations int           // in all histories
	Books      int           // histories of policies and holds
	Entries    int           // operations in them
	Compared   int           // comparisons of digests of two nodes at one index
	Reads      ReadCounts
	Spending   SpendCounts

	Violations []Violation // the first violations
	Broken     int         // number of violations
}

func (r *run) report() *Report {
	seconds := r.watch.led(r.work.Tally.finished(r.cfg.Duration))
	useful := usefulnessOf(r.work.demandPerSecond(), seconds)
	if !r.cfg.Restless {
		r.violations.Add("cluster", Useful(useful))
	}
	r.mu.Lock()
	selfStops := maps.Clone(r.selfStops) // the nodes still run and may add to the original
	r.mu.Unlock()
	rep := &Report{
		Seed: r.cfg.Seed, Refused: r.cluster.Refused.Load(), Nodes: len(r.cluster.Nodes), Duration: r.cfg.Duration,
		Moved: r.cluster.Moved.Load(), Kills: r.cluster.Interrupted.Load(),
		Faults: r.faults, SelfStops: selfStops, Skipped: r.skipped,
		Totals: r.work.Tally.totals(), Useful: useful, Compared: r.watch.Replicas.Compared(),
		Reads: r.work.Reads.Counts(),
	}
	rep.Leaderless, rep.NoLeader = r.watch.Leaderless()
	for _, t := range r.work.counters() {
		rep.Keys++
		rep.Operations += len(t.Ops())
	}
	for _, t := range append(slices.Clone(r.work.Buckets), r.work.Slidings...) {
		rep.Operations += len(t.Ops())
	}
	if r.work.Spending != nil {
		rep.Spending = r.work.Spending.Counts()
	}
	for _, ring := range r.work.Books.Rings() {
		for _, t := range ring.Trails() {
			rep.Books++
			rep.Entries += len(t.Ops())
		}
	}
	rep.Violations, rep.Broken = r.violations.List()
	return rep
}

// String formats the report for reading.
func (r *Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-22s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "chaos: %d nodes, %v, seed %d\n", r.Nodes, r.Duration, r.Seed)
	line("faults", "%d: %s", sum(r.Faults), ledger.Counts(r.Faults))
	if damaged := r.Faults[DamageLog]; damaged > 0 {
		line("damaged logs", "%d, %d of them refused with the reason, and the node replaced", damaged, r.Refused)
	}
	if r.Moved > 0 {
		line("moves", "%d replicas, with %d kills of nodes and of the operator's command", r.Moved, r.Kills)
	}
	for _, skipped := range r.Skipped {
		line("SKIPPED", "%s", skipped)
	}
	if len(r.SelfStops) > 0 {
		line("stopped by themselves", "%d: %s", sum(r.SelfStops), ledger.Counts(r.SelfStops))
	}
	t := r.Totals
	line("decisions", "%d: %d allowed, %d denied", t.Allowed+t.Denied, t.Allowed, t.Denied)
	line("commands", "%d answered, %d not applied, %d unknown, %d refused", t.Answered,
		t.NotApplied, t.Unknown, t.Refused)
	line("by word", "%s", ledger.Counts(t.Words))
	line("without a leader", "%.1f s in all, %.1f s at the longest", r.Leaderless.Seconds(), r.NoLeader.Seconds())
	line("longest gap", "%v without any answer, slowest grant %v", t.LongestGap.Round(time.Millisecond),
		t.SlowestGrant.Round(time.Millisecond))
	line("useful", "%.0f of %.0f units admitted in %d healthy of %d seconds", r.Useful.Admitted, r.Useful.CouldAdmit,
		r.Useful.Healthy, r.Useful.Seconds)
	line("histories", "%d operations, %d keys linearized, %d digests compared", r.Operations, r.Keys, r.Compared)
	line("policies, holds", "%d operations in %d histories", r.Entries, r.Books)
	line("reads", "%d linearizable, %d of them at followers; %d without an answer", r.Reads.Linearizable,
		r.Reads.AtFollowers, r.Reads.Unanswered)
	line("stale reads", "%d judged, %d older than they say; %d did not know, the oldest said %v", r.Reads.Stale,
		r.Reads.Understated, r.Reads.Ageless, r.Reads.Oldest)
	if e := r.Spending; e.Takings > 0 {
		line("events", "%d thresholds, %d ends of holds: %d missing, %d twice, %d false; readers moved %d times",
			e.Thresholds, e.Settled, e.Missing, e.Twice, e.False, e.Moves)
		line("spending", "%d takings, %d sent again with their ID, %d unknown", e.Takings, e.Repeated, e.Unknown)
	}
	line("violations", "%d", r.Broken)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "VIOLATION %v\n", v)
	}
	if more := r.Broken - len(r.Violations); more > 0 {
		fmt.Fprintf(&b, "... and %d more\n", more)
	}
	return b.String()
}

func sum[K comparable](m map[K]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}
