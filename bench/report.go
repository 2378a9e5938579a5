package bench

import (
	"encoding/json"
	"io"
	"time"
)

// Report is what a run found, with what somebody else needs to repeat it.
type Report struct {
	Started       time.Time        `json:"started"`
	Machine       Machine          `json:"machine"`
	LoadGenerator string           `json:"load_generator"` // and its version
	Repetitions   int              `json:"repetitions"`
	CellTime      string           `json:"cell_time"`
	Targets       []Contender      `json:"targets"`
	Scenarios     []ScenarioReport `json:"scenarios"`
	Ratios        []Ratio          `json:"ratios,omitempty"`
	Snapshots     *SnapshotReport  `json:"snapshots_under_load,omitempty"`
	FsyncMicros   float64          `json:"fsync_us,omitempty"` // median time of one small write and fsync where the servers' data is
}

// Contender says what was measured.
type Contender struct {
	Name         string     `json:"name"`
	Version      string     `json:"version"`
	CommandLines [][]string `json:"command_lines"` // one a process
}

// ScenarioReport holds a row for each target, in the order they were measured.
type ScenarioReport struct {
	Scenario
	Rows []Row `json:"rows"`
}

// Row is one target in one scenario.
type Row struct {
	Target      string   `json:"target"`
	Script      string   `json:"script,omitempty"` // loaded beforehand
	CommandLine []string `json:"command_line"`     // of the load
	Samples     []Sample `json:"samples"`          // one a repetition, in order

	PerSecond     Spread   `json:"decisions_per_second"`
	CPUMicros     Spread   `json:"server_cpu_us_per_decision"`
	P50Ms         Spread   `json:"p50_ms"`
	FirstOverThis Spread   `json:"first_over_this"`     // the first target's rate / this one's, within a repetition
	AdmittedShare float64  `json:"admitted_share"`      // of the probes
	Disturbed     []string `json:"disturbed,omitempty"` // why cells were measured again
	GeneratorBusy float64  `json:"generator_busy"`      // of one core, median
}

// Sample is one repetition of one cell.
type Sample struct {
	Requests      int     `json:"requests"`
	PerSecond     float64 `json:"decisions_per_second"`
	P50Ms         float64 `json:"p50_ms"`
	CPUMicros     float64 `json:"server_cpu_us_per_decision"`
	Probed        int     `json:"probed"`   // requests of the prober
	Admitted      int     `json:"admitted"` // of those
	GeneratorBusy float64 `json:"generator_busy"`
}

// summarize fills in the rows' figures from their samples, of which all rows have
// the same number.
func summarize(rows []Row) {
	for i := range rows {
		row := &rows[i]
		row.PerSecond = spreadOf(pick(row.Samples, func(s Sample) float64 { return s.PerSecond }))
		row.CPUMicros = spreadOf(pick(row.Samples, func(s Sample) float64 { return s.CPUMicros }))
		row.P50Ms = spreadOf(pick(row.Samples, func(s Sample) float64 { return s.P50Ms }))
		row.GeneratorBusy = spreadOf(pick(row.Samples, func(s Sample) float64 { return s.GeneratorBusy })).Median
		row.FirstOverThis = spreadOf(ratios(rows[0].Samples, row.Samples))
		row.AdmittedShare = admittedShare(row.Samples)
	}
}

func pick(samples []Sample, figure func(Sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = figure(s)
	}
	return values
}

// ratios compares two targets repetition by repetition: neighbours in time, so both
// had the same machine.
func ratios(first, this []Sample) []float64 {
	values := make([]float64, len(this))
	for i := range this {
		values[i] = first[i].PerSecond / this[i].PerSecond
	}
	return values
}

// admittedShare is 0 without a probe.
func admittedShare(samples []Sample) float64 {
	probed, admitted := 0, 0
	for _, s := range samples {
		probed += s.Probed
		admitted += s.Admitted
	}
	return float64(admitted) / float64(max(probed, 1))
}

// WriteJSON writes everything, samples included.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
