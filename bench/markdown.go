package bench

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Insert puts the results between these markers.
const (
	figuresBegin = "<!-- figures: begin -->"
	figuresEnd   = "<!-- figures: end -->"
)

// Insert replaces the text between a page's markers with this report.
func (r *Report) Insert(page []byte) ([]byte, error) {
	begin, end := bytes.Index(page, []byte(figuresBegin)), bytes.Index(page, []byte(figuresEnd))
	if begin < 0 || end < begin {
		return nil, fmt.Errorf("%w: it must have the lines %s and %s", ErrNoMarkers, figuresBegin, figuresEnd)
	}
	var out bytes.Buffer
	out.Write(page[:begin+len(figuresBegin)])
	out.WriteString("\n\n")
	if err := r.WriteMarkdown(&out); err != nil {
		return nil, err
	}
	out.WriteString("\n")
	out.Write(page[end:])
	return out.Bytes(), nil
}

// WriteMarkdown writes the report as a part of a page. If the report has results for goals, it leaves out the scenarios
// without a goal. The JSON has all of them.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Taken %s on %s, load average %.2f before. %s, %d repetitions of %s, interleaved; medians, in "+
		"brackets the least and the greatest.\n\n",
		r.Started.Format("2006-01-02"), r.Machine, r.Machine.LoadAverage, r.Generator, r.Repetitions, r.CellTime)
	fmt.Fprintf(&b, "    %s\n\n", shellLine(r.Command))
	r.targetsGrid().markdown(&b)
	if len(r.Results) > 0 {
		b.WriteString("\n### Goals\n\n")
		resultsGrid(r.Results).markdown(&b)
	}
	if g := r.strongestGrid(); len(g.Rows) > 0 {
		b.WriteString("\n### The strongest rivals\n\n")
		g.markdown(&b)
	}
	for _, s := range r.Scenarios {
		if len(r.Results) == 0 || r.judges(s.Name) {
			s.markdown(&b)
		}
	}
	if s := r.Snapshots; s != nil {
		fmt.Fprintf(&b, "\n### Snapshots under load\n\n%s\n\n", s.about())
		s.grid().markdown(&b)
		writeList(&b, s.remarks())
	}
	b.WriteString("\n### Notes\n")
	writeList(&b, r.Notes())
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) targetsGrid() grid {
	g := grid{Head: []string{"target", "version", "processes"}}
	for _, t := range r.Targets {
		g.Rows = append(g.Rows, plains(t.Name, t.Version, fmt.Sprint(len(t.CommandLines))))
	}
	return g
}

func (s ScenarioReport) markdown(b *strings.Builder) {
	if len(s.Rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n%s, cells of %s\n\n", s.Name, s.About, s.CellTime)
	s.grid().markdown(b)
	if remarks := s.remarks(); remarks != nil {
		writeList(b, remarks)
	}
}

// judges reports whether the scenario has a result for a goal.
func (r *Report) judges(scenario string) bool {
	return slices.ContainsFunc(r.Results, func(one Result) bool { return one.Scenario == scenario })
}

// shellLine formats a command for a shell.
func shellLine(args []string) string {
	return strings.Join(mapOf(args, func(arg string) string {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"$&|;<>()*?[]{}#~\\") {
			return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		return arg
	}), " ")
}

// writeList writes lines as a list with an empty line before it.
func writeList(b *strings.Builder, lines []string) {
	b.WriteString("\n")
	for _, line := range lines {
		fmt.Fprintf(b, "- %s\n", strings.ReplaceAll(line, "*", `\*`))
	}
}
