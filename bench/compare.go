package bench

import (
	"fmt"
	"io"
	"slices"

	"github.com/weir-project/weir/bench/machine"
)

// Verdict is the change of a figure between two reports.
type Verdict string

const (
	Better Verdict = "better"
	Worse  Verdict = "worse"
	Same   Verdict = "within the noise"
	// Unknown is the verdict without enough measurements.
	Unknown Verdict = "unknown"
)

// leastChange is the usual difference between two runs of the same program on the same machine. A smaller difference of
// medians never counts as a change.
const leastChange = 0.03

// Change is a figure of an entrant that both reports contain.
type Change struct {
	Scenario string  `json:"scenario"`
	Label    string  `json:"label"`
	Figure   Figure  `json:"figure"`
	Before   Spread  `json:"before"`
	After    Spread  `json:"after"`
	Verdict  Verdict `json:"verdict"`
}

// verdictOn reports whether a figure changed beyond the noise: no repetition of one run lies among those of the other,
// and the medians differ by more than leastChange.
func verdictOn(before, after Spread, more bool) Verdict {
	apart := after.Min > before.Max || after.Max < before.Min
	if !apart || abs(after.Median-before.Median) < leastChange*before.Median {
		return Same
	}
	if (after.Median > before.Median) == more {
		return Better
	}
	return Worse
}

func abs(v float64) float64 { return max(v, -v) }

// Comparison compares a report with an earlier one.
type Comparison struct {
	Changes []Change
	Doubts  []string // why they may not be comparable
	Missing []string // entrants in only one of them
}

// CompareReports compares two reports figure by figure.
func CompareReports(before, after *Report) Comparison {
	c := Comparison{Doubts: doubtsBetween(before, after)}
	for _, s := range before.Scenarios {
		for _, row := range s.Rows {
			other, ok := after.row(s.Name, row.Label)
			if !ok {
				c.Missing = append(c.Missing, fmt.Sprintf("%s, %s: only before", s.Name, row.Label))
				continue
			}
			c.Changes = append(c.Changes, changes(s.Name, row, other)...)
		}
	}
	for _, s := range after.Scenarios {
		for _, row := range s.Rows {
			if _, ok := before.row(s.Name, row.Label); !ok {
				c.Missing = append(c.Missing, fmt.Sprintf("%s, %s: only after", s.Name, row.Label))
			}
		}
	}
	return c
}

func changes(scenario string, before, after Row) (all []Change) {
	for _, k := range figureKinds {
		b, ok1 := before.Figures[k.figure]
		a, ok2 := after.Figures[k.figure]
		// The slowest request of a cell depends more on the machine than on the server.
		if ok1 && ok2 && k.figure != Slowest {
			all = append(all, Change{scenario, before.Label, k.figure, b, a, verdictOn(b, a, k.more)})
		}
	}
	return all
}

func (r *Report) row(scenario, label string) (Row, bool) {
	for _, s := range r.Scenarios {
		i := slices.IndexFunc(s.Rows, func(row Row) bool { return row.Label == label })
		if s.Name == scenario && i >= 0 {
			return s.Rows[i], true
		}
	}
	return Row{}, false
}

// doubtsBetween lists differences of the conditions, which make the figures of the two runs hard to compare.
func doubtsBetween(before, after *Report) (doubts []string) {
	for _, c := range []struct{ what, before, after string }{
		{"the machine", before.Machine.String(), after.Machine.String()},
		{"the load generator", before.Generator, after.Generator},
		{"the length of a cell", before.CellTime, after.CellTime},
		{"the number of repetitions", fmt.Sprint(before.Repetitions), fmt.Sprint(after.Repetitions)},
	} {
		if c.before != c.after {
			doubts = append(doubts, fmt.Sprintf("%s differs: %s, then %s", c.what, c.before, c.after))
		}
	}
	for i, m := range []machine.Machine{before.Machine, after.Machine} {
		if busy(m) {
			doubts = append(doubts, fmt.Sprintf("the machine was busy before the %s run (load average %.2f)",
				[...]string{"first", "second"}[i], m.LoadAverage))
		}
	}
	return doubts
}

// WriteText writes which figures improved, which became worse, and how many did not change.
func (c Comparison) WriteText(w io.Writer) error {
	for _, doubt := range c.Doubts {
		fmt.Fprintf(w, "WARNING: %s\n", doubt)
	}
	for _, v := range []Verdict{Worse, Better} {
		if err := c.write(w, v); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d figures are within the noise: repetitions of one run lie among those of the other, or "+
		"medians differ by less than %.0f %%\n",
		len(c.of(Same)), 100*leastChange)
	for _, m := range c.Missing {
		fmt.Fprintf(w, "not compared: %s\n", m)
	}
	return nil
}

func (c Comparison) of(v Verdict) (some []Change) {
	for _, change := range c.Changes {
		if change.Verdict == v {
			some = append(some, change)
		}
	}
	return some
}

func (c Comparison) write(w io.Writer, v Verdict) error {
	some := c.of(v)
	if len(some) == 0 {
		fmt.Fprintf(w, "nothing got %s\n\n", v)
		return nil
	}
	fmt.Fprintf(w, "%s:\n", v)
	g := grid{Head: []string{"scenario", "entrant", "figure", "before", "after", "change"}}
	for _, change := range some {
		k := kindOf(change.Figure)
		g.Rows = append(g.Rows, append(plains(change.Scenario, change.Label, k.name),
			change.Before.entry(k.format), change.After.entry(k.format),
			plain(fmt.Sprintf("%+.0f %%", change.percent()))))
	}
	if err := g.writeText(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// percent returns the relative change of the median.
func (c Change) percent() float64 { return 100 * (c.After.Median/c.Before.Median - 1) }
