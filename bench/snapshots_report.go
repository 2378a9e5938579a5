package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/weir-project/weir/bench/servers"
)

// SnapshotReport is the effect of snapshots on the latency of decisions.
type SnapshotReport struct {
	CommandLines  [][]string `json:"command_lines"` // of the nodes
	Request       []string   `json:"request"`       // for the first key
	Keys          int        `json:"keys"`
	Clients       int        `json:"clients"`
	Pipeline      int        `json:"pipeline"`
	TopPerSecond  float64    `json:"top_decisions_per_second"` // closed loop, same clients and pipeline
	Share         float64    `json:"share_of_top"`
	PerSecond     float64    `json:"decisions_per_second"` // due, open loop
	CPUMicros     float64    `json:"server_cpu_us_per_decision"`
	GeneratorBusy float64    `json:"generator_busy"` // of one core
	Windows       []Window   `json:"windows"`        // in order
	Kinds         []Window   `json:"kinds"`          // all windows of a kind together
	// OneExtraMs and AllExtraMs are the increase of the p99.9 during a snapshot of the leader, or of all nodes, over
	// the quiet window before it.
	OneExtraMs Spread `json:"leader_p999_above_quiet_ms"`
	AllExtraMs Spread `json:"all_p999_above_quiet_ms"`
}

// Window is a period of the run. A decision that overlaps with a snapshot counts to the snapshot. Latency counts from
// when a request was due until its whole pipeline was answered.
type Window struct {
	Kind      WindowKind `json:"kind"`
	Seconds   float64    `json:"seconds"`
	Decisions int64      `json:"decisions"`
	Errors    int64      `json:"errors"` // error replies, not counted as decisions
	Said      string     `json:"said,omitempty"`
	P50Ms     float64    `json:"p50_ms"`
	P99Ms     float64    `json:"p99_ms"`
	P999Ms    float64    `json:"p999_ms"`
	MaxMs     float64    `json:"max_ms"`
}

func (s Snapshots) newReport(c *servers.Cluster, top float64) *SnapshotReport {
	return &SnapshotReport{
		CommandLines: c.CommandLines(), Request: weirCommands()[Lasting].For(s.load().key(0)),
		Keys: s.Keys, Clients: s.Clients, Pipeline: s.Pipeline, TopPerSecond: top, Share: s.Share,
		PerSecond: top * s.Share,
	}
}

// summarize computes the latencies.
func (r *SnapshotReport) summarize(windows []*window) {
	for _, w := range windows {
		r.Windows = append(r.Windows, windowOf(w, w.ended.Sub(w.began)))
	}
	for _, kind := range []WindowKind{Quiet, OneSaves, AllSave, Aftermath} {
		if w, lasted := together(kind, windows); lasted > 0 {
			r.Kinds = append(r.Kinds, windowOf(w, lasted))
		}
	}
	r.OneExtraMs, r.AllExtraMs = spreadOf(extra(OneSaves, r.Windows)), spreadOf(extra(AllSave, r.Windows))
}

// together merges all windows of a kind.
func together(kind WindowKind, windows []*window) (all *window, lasted time.Duration) {
	all = &window{kind: kind, latency: new(histogram)}
	for _, w := range windows {
		if w.kind == kind {
			all.latency.add(w.latency)
			all.tally.add(w.tally)
			lasted += w.ended.Sub(w.began)
		}
	}
	return all, lasted
}

func windowOf(w *window, lasted time.Duration) Window {
	return Window{
		Kind: w.kind, Seconds: lasted.Seconds(), Decisions: w.tally.answers - w.tally.errors,
		Errors: w.tally.errors, Said: w.tally.said,
		P50Ms: msAt(w.latency, 50), P99Ms: msAt(w.latency, 99), P999Ms: msAt(w.latency, 99.9),
		MaxMs: msAt(w.latency, 100),
	}
}

// extra compares each snapshot of a kind with the quiet window before it. It omits a snapshot that was too short to
// affect a decision.
func extra(kind WindowKind, windows []Window) (ms []float64) {
	for i, w := range windows {
		if i > 0 && w.Kind == kind && w.Decisions > 0 && windows[i-1].Kind == Quiet {
			ms = append(ms, w.P999Ms-windows[i-1].P999Ms)
		}
	}
	return ms
}

// charge divides the CPU time of the servers by the number of decisions. The last process is the load generator.
func (r *SnapshotReport) charge(before, after []time.Duration, lasted time.Duration) {
	servers, decisions := time.Duration(0), int64(0)
	last := len(before) - 1
	for i := range last {
		servers += after[i] - before[i]
	}
	for _, w := range r.Windows {
		decisions += w.Decisions
	}
	r.CPUMicros = perDecision(servers, int(max(decisions, 1)))
	r.GeneratorBusy = (after[last] - before[last]).Seconds() / lasted.Seconds()
}

func (r *SnapshotReport) write(w io.Writer) error {
	fmt.Fprintf(w, "\nsnapshots under load: %s\n", r.about())
	if err := r.grid().writeText(w); err != nil {
		return err
	}
	for _, remark := range r.remarks() {
		fmt.Fprintln(w, remark)
	}
	return nil
}

// about describes the run.
func (r *SnapshotReport) about() string {
	return fmt.Sprintf("%s, %d keys, -P %d -c %d, open loop at %s/s, %.0f %% of the top rate %s/s",
		leaderName, r.Keys, r.Pipeline, r.Clients, rate(r.PerSecond), 100*r.Share, rate(r.TopPerSecond))
}

func (r *SnapshotReport) grid() grid {
	g := grid{Head: []string{"snapshot", "lasted", "decisions/s", "errors", "p50", "p99", "p99.9", "max"}}
	for _, k := range r.Kinds {
		g.Rows = append(g.Rows,
			plains(string(k.Kind), fmt.Sprintf("%.1f s", k.Seconds), rate(float64(k.Decisions)/k.Seconds),
				fmt.Sprint(k.Errors), millis(k.P50Ms), millis(k.P99Ms), millis(k.P999Ms), millis(k.MaxMs)))
	}
	return g
}

// remarks are the findings of the run, and the reasons to doubt them.
func (r *SnapshotReport) remarks() []string {
	remarks := []string{
		fmt.Sprintf("p99.9 above that of all quiet seconds (wanted: at most %s): the leader's %s, all nodes' %s",
			millis(mostExtraMs), r.aboveQuiet(OneSaves), r.aboveQuiet(AllSave)),
		fmt.Sprintf("p99.9 above that of the quiet seconds just before: the leader's %s, all nodes' %s",
			r.OneExtraMs.text(millis), r.AllExtraMs.text(millis)),
		fmt.Sprintf("server CPU %s a decision, snapshots included; the load generator used %.2f of a core",
			micros(r.CPUMicros), r.GeneratorBusy),
	}
	for _, k := range r.Kinds {
		if k.Errors > 0 {
			remarks = append(remarks, fmt.Sprintf("WARNING: %d of %d requests were answered by an error, the first: %s",
				k.Errors, k.Decisions+k.Errors, k.Said))
		}
	}
	return remarks
}

// aboveQuiet compares the p99.9 of all snapshots of a kind with that of all quiet windows. A single window of seconds
// has few decisions beyond its p99.9, so its value scatters.
func (r *SnapshotReport) aboveQuiet(kind WindowKind) string {
	p999 := map[WindowKind]float64{}
	for _, k := range r.Kinds {
		p999[k.Kind] = k.P999Ms
	}
	if _, ok := p999[kind]; !ok {
		return "-"
	}
	return fmt.Sprintf("%+.2f ms", p999[kind]-p999[Quiet])
}

// mostExtraMs is the goal for the increase of the p99.9 by a snapshot.
const mostExtraMs = 5
