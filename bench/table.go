package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-project/weir/bench/machine"
)

// busyLoad is the load average per core above which the machine was busy with other work before the run.
const busyLoad = 0.3

func busy(m machine.Machine) bool { return m.LoadAverage > busyLoad*float64(max(m.Cores, 1)) }

// WriteTable writes the report for a reader.
func (r *Report) WriteTable(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s, %d repetitions of %s, interleaved; median (min-max)\n",
		r.Machine, r.Generator, r.Repetitions, r.CellTime)
	for _, t := range r.Targets {
		fmt.Fprintf(&text, "%s: %s\n", t.Name, t.Version)
	}
	for _, s := range r.Scenarios {
		if err := s.write(&text); err != nil {
			return err
		}
	}
	if g := r.strongestGrid(); len(g.Rows) > 0 {
		fmt.Fprintln(&text, "\nthe strongest rivals, and the machine's speed")
		if err := g.writeText(&text); err != nil {
			return err
		}
	}
	if err := writeResults(&text, r.Results); err != nil {
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
	fmt.Fprintf(w, "\n%s: %s (cells of %s)\n", s.Name, s.About, s.CellTime)
	if err := s.grid().writeText(w); err != nil {
		return err
	}
	for _, remark := range s.remarks() {
		fmt.Fprintln(w, remark)
	}
	return nil
}

// grid returns a line for each row.
func (s ScenarioReport) grid() grid {
	if len(s.Rows) == 0 {
		return grid{}
	}
	g := grid{Head: []string{"", "decisions/s", s.Rows[0].Label + "/this", "server CPU", "p50", "p90",
		"p99", "p99.9", "max",
		"disk", "admitted", kindOf(BytesPerKey).name, kindOf(IdleMemory).name, kindOf(MostMemory).name}}
	for i, r := range s.Rows {
		rated, ratio := r.entry(Rate), entry{}
		rated.Text = r.marks() + rated.Text
		if i > 0 {
			ratio = r.FirstOverThis.entry(times)
		}
		line := []entry{plain(r.Label), rated, ratio, r.entry(CPU)}
		for _, f := range []Figure{P50, P90, P99, P999, Slowest, DiskBytes} {
			line = append(line, plain(r.entry(f).Text))
		}
		line = append(line, plain(fmt.Sprintf("%.0f %%", 100*r.AdmittedShare)))
		for _, f := range []Figure{BytesPerKey, IdleMemory, MostMemory} {
			line = append(line, plain(r.entry(f).Text))
		}
		g.Rows = append(g.Rows, line)
	}
	return g.withoutEmpty()
}

// remarks list the cells that were measured again.
func (s ScenarioReport) remarks() (remarks []string) {
	for _, row := range s.Rows {
		for _, why := range row.Disturbed {
			remarks = append(remarks, fmt.Sprintf("%s: measured again: %s", row.Label, why))
		}
	}
	return remarks
}

// marks precede a rate that depends more on the generator than on the server; see Notes.
func (r Row) marks() (marks string) {
	if r.GeneratorLimit {
		marks = "*"
	}
	if r.late() {
		marks += "!"
	}
	return marks
}

// entry is empty for a figure that the row lacks.
func (r Row) entry(f Figure) entry {
	s, ok := r.Figures[f]
	if !ok {
		return entry{}
	}
	return s.entry(kindOf(f).format)
}

func (r *Report) writeNotes(w io.Writer) {
	fmt.Fprintln(w)
	for _, note := range r.Notes() {
		fmt.Fprintln(w, note)
	}
}

// Notes describe how figures were measured, and the reasons to doubt them.
func (r *Report) Notes() []string {
	notes := []string{
		"server CPU: user and system time of all server processes per decision, including saves",
		"p50 to max: latency of a whole pipeline since it was sent, or in an open loop since it was due; medians " +
			"of the repetitions",
		"disk: bytes written to disk per decision; admitted: share of the answers, 100 % for a target without limits",
	}
	least, most := r.generatorCost()
	if most > 0 {
		notes = append(notes,
			fmt.Sprintf("the load generator used %s to %s of CPU per request", micros(least), micros(most)))
	}
	if r.any(func(row Row) bool { return row.GeneratorLimit }) {
		notes = append(notes,
			"*: the load generator was the bottleneck: it was always busy and used more of the cores than the "+
				"server, so the server could decide more")
	}
	if r.any(Row.late) {
		notes = append(notes, "!: the load generator sent late, by at least half of the p99.9")
	}
	for _, l := range r.LeftOut {
		notes = append(notes, fmt.Sprintf("left out: %s: %s", l.Name, l.Why))
	}
	return append(notes, r.doubts()...)
}

// doubts are about the machine.
func (r *Report) doubts() (notes []string) {
	if r.FsyncMicros > 0 {
		notes = append(notes,
			fmt.Sprintf("one fsync of a page takes %s on the disk of the servers", micros(r.FsyncMicros)))
		if r.FsyncMicros < machine.LeastFsyncMicros {
			notes = append(notes,
				"WARNING: the servers' data is not on a disk, or the disk acknowledges fsync before writing: "+
					"figures with fsync are meaningless")
		}
	}
	if busy(r.Machine) {
		notes = append(notes, fmt.Sprintf("WARNING: the machine was busy before the run (load average %.2f): "+
			"measure again when it is idle", r.Machine.LoadAverage))
	}
	return notes
}

// generatorCost returns the minimum and maximum cost of a request for the generator.
func (r *Report) generatorCost() (least, most float64) {
	for _, s := range r.Scenarios {
		for _, row := range s.Rows {
			if least == 0 || row.GeneratorMicros < least {
				least = row.GeneratorMicros
			}
			most = max(most, row.GeneratorMicros)
		}
	}
	return least, most
}

func (r *Report) any(of func(Row) bool) bool {
	for _, s := range r.Scenarios {
		for _, row := range s.Rows {
			if of(row) {
				return true
			}
		}
	}
	return false
}

// text formats a spread in words.
func (s Spread) text(format func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", format(s.Median), format(s.Min), format(s.Max))
}
