package bench

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// The markers between which Insert puts the figures.
const (
	figuresBegin = "<!-- figures: begin -->"
	figuresEnd   = "<!-- figures: end -->"
)

// Insert replaces what a page has between its markers with this report.
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

// WriteMarkdown writes the report as a part of a page.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Taken %s on %s, load average %.2f before. %s, %d repetitions of %s, interleaved; medians, in brackets the least and the greatest.\n\n",
		r.Started.Format("2006-01-02"), r.Machine, r.Machine.LoadAverage, r.Generator, r.Repetitions, r.CellTime)
	fmt.Fprintf(&b, "    %s\n", shellLine(r.Command))
	r.markdownVersions(&b)
	r.markdownResults(&b)
	for _, s := range r.Scenarios {
		s.markdown(&b)
	}
	if r.Snapshots != nil {
		var text strings.Builder
		if err := r.Snapshots.write(&text); err != nil {
			return err
		}
		b.WriteString("\n### Snapshots under load\n" + indented(text.String()) + "\n")
	}
	b.WriteString("\n### Notes\n\n")
	for _, note := range r.Notes() {
		fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(note, "*", `\*`))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// indented makes lines a block of text as it is.
func indented(text string) string {
	return strings.ReplaceAll("\n"+strings.TrimSpace(text), "\n", "\n    ")
}

func (r *Report) markdownVersions(b *strings.Builder) {
	b.WriteString("\n| target | version | processes |\n|---|---|---|\n")
	for _, t := range r.Targets {
		fmt.Fprintf(b, "| %s | %s | %d |\n", t.Name, t.Version, len(t.CommandLines))
	}
}

func (r *Report) markdownResults(b *strings.Builder) {
	if len(r.Results) == 0 {
		return
	}
	b.WriteString("\n### What this is run for\n\n| scenario | figure | of | over | wanted | measured | |\n|---|---|---|---|---|---|---|\n")
	for _, one := range r.Results {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", one.Scenario, kindOf(one.Figure).name,
			one.Of, one.over(), one.wanted(), one.Measured.brackets(one.format()), one.verdict())
	}
}

func (s ScenarioReport) markdown(b *strings.Builder) {
	if len(s.Rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n%s, cells of %s\n\n| | decisions/s | %s/this | server CPU | p50 | p90 | p99 | p99.9 | max | disk | admitted | bytes/key |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
		s.Name, s.About, s.CellTime, s.Rows[0].Label)
	for i, r := range s.Rows {
		mark, ratio, cpu := "", "", ""
		if r.GeneratorLimit {
			mark = `\*`
		}
		if r.late() {
			mark += "!"
		}
		if i > 0 {
			ratio = r.FirstOverThis.brackets(times)
		}
		if v, ok := r.Figures[CPU]; ok {
			cpu = v.brackets(micros)
		}
		fmt.Fprintf(b, "| %s | %s%s | %s | %s | %s | %s | %s | %s | %s | %s | %.0f %% | %s |\n", r.Label,
			mark, r.Figures[Rate].brackets(rate), ratio, cpu, r.text(P50), r.text(P90), r.text(P99), r.text(P999),
			r.text(Slowest), r.text(DiskBytes), 100*r.AdmittedShare, r.text(BytesPerKey))
	}
	for _, r := range s.Rows {
		if r.CommandLine != nil {
			fmt.Fprintf(b, "\nThe load of %s with redis-benchmark:\n\n    %s\n", r.Label, shellLine(r.CommandLine))
			break
		}
	}
}

// brackets writes a spread as one cell of a table.
func (s Spread) brackets(format func(float64) string) string {
	return fmt.Sprintf("%s (%s-%s)", format(s.Median), format(s.Min), format(s.Max))
}
