package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weir-project/weir/bench/machine"
)

// Report is the result of a run, with the information to repeat it.
type Report struct {
	Started     time.Time        `json:"started"`
	Command     []string         `json:"command"` // of the run
	Machine     machine.Machine  `json:"machine"`
	Generator   string           `json:"load_generator"` // and its version
	Repetitions int              `json:"repetitions"`
	CellTime    string           `json:"cell_time"`
	Targets     []Contender      `json:"targets"`
	LeftOut     []LeftOut        `json:"left_out,omitempty"`
	Scenarios   []ScenarioReport `json:"scenarios"`
	Results     []Result         `json:"goals,omitempty"`
	Snapshots   *SnapshotReport  `json:"snapshots_under_load,omitempty"`
	FsyncMicros float64          `json:"fsync_us,omitempty"` // median of a small write and fsync on the servers' disk
}

// Contender describes a measured server.
type Contender struct {
	Name         string     `json:"name"`
	Version      string     `json:"version"`
	CommandLines [][]string `json:"command_lines"` // one a process
}

// LeftOut is an entrant that was not measured, and the reason.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// ScenarioReport holds a row for each entrant, in the order of measurement.
type ScenarioReport struct {
	Scenario
	CellTime string `json:"cell_time"`
	Rows     []Row  `json:"rows"`
}

// Row is one entrant of a scenario.
type Row struct {
	Label       string   `json:"label"`
	Target      string   `json:"target"`
	Load        Load     `json:"load"`
	Request     []string `json:"request"`                // for its first key
	Script      string   `json:"script,omitempty"`       // loaded beforehand
	Before      []string `json:"before,omitempty"`       // a command that was sent beforehand
	CommandLine []string `json:"command_line,omitempty"` // by which redis-benchmark sends the same, if it can
	Samples     []Sample `json:"samples"`                // one for each repetition, in order

	Figures         map[Figure]Spread `json:"figures"`
	FirstOverThis   Spread            `json:"first_over_this"` // the first row's rate / this one's, within a repetition
	AdmittedShare   float64           `json:"admitted_share"`  // of the answers that were read
	GeneratorMicros float64           `json:"generator_us_per_request"`
	GeneratorLimit  bool              `json:"generator_limit"` // the generator limited the rate, not the server
	LagP999Ms       float64           `json:"lag_p999_ms,omitempty"`
	Disturbed       []string          `json:"disturbed,omitempty"` // why cells were measured again
}

// Sample is one repetition of one cell.
type Sample struct {
	Requests  int     `json:"requests"`
	PerSecond float64 `json:"decisions_per_second"`
	Latency
	CPUMicros       float64 `json:"server_cpu_us_per_decision"`
	ServerBusy      float64 `json:"server_cores"`
	DiskBytes       float64 `json:"disk_bytes_per_decision"`
	BytesPerKey     float64 `json:"resident_bytes_per_key,omitempty"`
	IdleMemory      float64 `json:"resident_bytes_before,omitempty"` // of the server, without connections
	MostMemory      float64 `json:"resident_bytes_most,omitempty"`   // until the end of the cell
	Read            int     `json:"read"`                            // answers that were read
	Admitted        int     `json:"admitted"`                        // of those
	GeneratorMicros float64 `json:"generator_us_per_request"`
	GeneratorBusy   float64 `json:"generator_cores"`
	Threads         int     `json:"generator_threads,omitempty"` // it can keep busy; 0 for all cores
	LagP999Ms       float64 `json:"lag_p999_ms,omitempty"`       // how late requests left; open loops only
}

// describe records the information to send the same requests.
func (r *Row) describe(c *cell, addr string, requests int) {
	r.Label, r.Target, r.Load = c.Label, c.Target, c.Load
	command := c.target.Commands[c.Load.Workload]
	r.Request, r.Script = command.For(c.Load.key(0)), command.Script
	r.Before = command.Before
	r.CommandLine = RedisBenchmark{Binary: "redis-benchmark"}.CommandLine(c.job(addr, requests))
}

// summarize computes the rows' figures from their samples. All rows have the same number of samples.
func summarize(rows []Row) {
	for i := range rows {
		row := &rows[i]
		row.Figures = make(map[Figure]Spread)
		for _, k := range figureKinds {
			if s := spreadOf(mapOf(row.Samples, k.of)); s != (Spread{}) {
				row.Figures[k.figure] = s
			}
		}
		row.GeneratorMicros = medianOf(row.Samples, func(s Sample) float64 { return s.GeneratorMicros })
		row.LagP999Ms = medianOf(row.Samples, func(s Sample) float64 { return s.LagP999Ms })
		row.GeneratorLimit = mostly(row.Samples, Sample.generatorLimits)
		row.FirstOverThis = spreadOf(ratios(rows[0].Samples, row.Samples, kindOf(Rate).of))
		row.AdmittedShare = admittedShare(row.Samples)
	}
}

func medianOf(samples []Sample, figure func(Sample) float64) float64 {
	return spreadOf(mapOf(samples, figure)).Median
}

// ratios compares two targets repetition by repetition. Both are neighbours in time, so they had the same conditions.
func ratios(of, over []Sample, figure func(Sample) float64) []float64 {
	values := make([]float64, min(len(of), len(over)))
	for i := range values {
		values[i] = figure(of[i]) / figure(over[i])
	}
	return values
}

// admittedShare returns the admitted part of the answers that were read, or 0 without any.
func admittedShare(samples []Sample) float64 {
	read, admitted := 0, 0
	for _, s := range samples {
		read += s.Read
		admitted += s.Admitted
	}
	return float64(admitted) / float64(max(read, 1))
}

// LeaveOut records an entrant that is not measured, once.
func (r *Report) LeaveOut(name string, why error) {
	if !slices.ContainsFunc(r.LeftOut, func(l LeftOut) bool { return l.Name == name }) {
		r.LeftOut = append(r.LeftOut, LeftOut{name, why.Error()})
	}
}

// introduce asks a running server for its version, once for each name.
func (r *Report) introduce(ctx context.Context, t Target) error {
	if slices.ContainsFunc(r.Targets, func(c Contender) bool { return c.Name == t.Name }) {
		return nil
	}
	version, err := t.Server.Version(ctx)
	if err != nil {
		return fmt.Errorf("%s, its version: %w", t.Name, err)
	}
	r.Targets = append(r.Targets, Contender{t.Name, version, t.Server.CommandLines()})
	return nil
}

// WriteJSON writes the whole report, samples included.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
