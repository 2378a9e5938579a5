package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const (
	// limitedBy is the share of a core from which on the load generator, which has
	// one thread, counts as the limit of a cell.
	limitedBy = 0.95
	// busyLoad is the load average a core from which on a machine was busy with
	// something else before the run.
	busyLoad = 0.3
)

// WriteTable writes the report for a reader.
func (r *Report) WriteTable(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s, %d repetitions of %s, interleaved; median (min-max)\n",
		r.Machine, r.LoadGenerator, r.Repetitions, r.CellTime)
	for _, t := range r.Targets {
		fmt.Fprintf(&text, "%s: %s\n", t.Name, t.Version)
	}
	for _, s := range r.Scenarios {
		if err := s.write(&text); err != nil {
			return err
		}
	}
	if err := writeRatios(&text, r.Ratios); err != nil {
		return err
	}
	if r.Snapshots != nil {
		if err := r.Snapshots.write(&text); err != nil {
			return err
		}
	}
	r.writeNotes(&text)
	_, err := io.WriteString(w, text.String())
	return err
}

func (s ScenarioReport) write(w io.Writer) error {
	if len(s.Rows) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n", s.Scenario)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "target\tdecisions/s\t\t%s/this\t\tserver CPU\t\tp50\tadmitted\t\n", s.Rows[0].Target)
	for i, row := range s.Rows {
		mark, ratio := "", "\t"
		if row.GeneratorBusy >= limitedBy {
			mark = "*"
		}
		if i > 0 {
			ratio = row.FirstOverThis.columns(times)
		}
		fmt.Fprintf(table, "%s\t%s%s\t%s\t%s\t%.3g ms\t%.0f %%\t\n", row.Target,
			mark, row.PerSecond.columns(rate), ratio, row.CPUMicros.columns(micros),
			row.P50Ms.Median, 100*row.AdmittedShare)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, row := range s.Rows {
		for _, why := range row.Disturbed {
			fmt.Fprintf(w, "%s: measured again: %s\n", row.Target, why)
		}
	}
	return nil
}

func (r *Report) writeNotes(w io.Writer) {
	fmt.Fprintf(w, `
server CPU: user and system time of all threads of all its processes a decision, saving included
p50: of a whole pipeline, closed loop
admitted: share of probes during the load; a command that does not limit has 100 %%
`)
	if r.generatorLimited() {
		fmt.Fprintln(w, "*: the load generator's one thread was busy all the time; the server could do more")
	}
	if r.FsyncMicros > 0 {
		fmt.Fprintf(w, "one fsync of a page takes %s where the servers' data is\n", micros(r.FsyncMicros))
		if r.FsyncMicros < leastFsyncMicros {
			fmt.Fprintln(w, "WARNING: that is no disk, or one that does not wait: fsynced figures mean nothing here")
		}
	}
	if r.Machine.LoadAverage > busyLoad*float64(max(r.Machine.Cores, 1)) {
		fmt.Fprintf(w, "WARNING: the machine was busy before the run (load average %.2f): "+
			"measure again when it is idle\n", r.Machine.LoadAverage)
	}
}

func (r *Report) generatorLimited() bool {
	for _, s := range r.Scenarios {
		for _, row := range s.Rows {
			if row.GeneratorBusy >= limitedBy {
				return true
			}
		}
	}
	return false
}

// columns writes a spread as two cells of a table.
func (s Spread) columns(format func(float64) string) string {
	return fmt.Sprintf("%s\t(%s-%s)", format(s.Median), format(s.Min), format(s.Max))
}

// text writes a spread as words.
func (s Spread) text(format func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", format(s.Median), format(s.Min), format(s.Max))
}

func times(ratio float64) string { return fmt.Sprintf("%.2fx", ratio) }
func micros(us float64) string   { return fmt.Sprintf("%.2fµs", us) }

// rate writes requests per second with up to three digits: 512, 98.3k, 1.75M.
func rate(perSecond float64) string {
	switch {
	case perSecond >= 999.5e3:
		return fmt.Sprintf("%.3gM", perSecond/1e6)
	case perSecond >= 999.5:
		return fmt.Sprintf("%.3gk", perSecond/1e3)
	default:
		return fmt.Sprintf("%.0f", perSecond)
	}
}
