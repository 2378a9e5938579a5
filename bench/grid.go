package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// grid is a table before formatting: for a terminal, as Markdown, or as HTML by page.html.
type grid struct {
	Head []string
	Rows [][]entry
}

// entry is one field of a grid: a text, and its spread if it has one.
type entry struct{ Text, Spread string }

func plain(text string) entry { return entry{Text: text} }

// plains returns entries without a spread.
func plains(texts ...string) []entry { return mapOf(texts, plain) }

// entry returns the median of a spread with its minimum and maximum.
func (s Spread) entry(format func(float64) string) entry {
	return entry{format(s.Median), fmt.Sprintf("(%s-%s)", format(s.Min), format(s.Max))}
}

// withoutEmpty returns the grid without columns that are empty in all rows.
func (g grid) withoutEmpty() grid {
	kept := grid{Rows: make([][]entry, len(g.Rows))}
	for column, head := range g.Head {
		if !g.any(column, func(e entry) bool { return e != entry{} }) {
			continue
		}
		kept.Head = append(kept.Head, head)
		for i, row := range g.Rows {
			kept.Rows[i] = append(kept.Rows[i], row[column])
		}
	}
	return kept
}

func (g grid) any(column int, holds func(entry) bool) bool {
	for _, row := range g.Rows {
		if holds(row[column]) {
			return true
		}
	}
	return false
}

// writeText aligns the columns, and puts spreads in separate columns.
func (g grid) writeText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	spread := make([]bool, len(g.Head))
	for column, head := range g.Head {
		spread[column] = g.any(column, func(e entry) bool { return e.Spread != "" })
		fmt.Fprint(table, head+"\t")
		if spread[column] {
			fmt.Fprint(table, "\t")
		}
	}
	fmt.Fprintln(table)
	for _, row := range g.Rows {
		for column, e := range row {
			fmt.Fprint(table, e.Text+"\t")
			if spread[column] {
				fmt.Fprint(table, e.Spread+"\t")
			}
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// markdown writes the grid with spreads after their medians.
func (g grid) markdown(b *strings.Builder) {
	writeLine := func(fields []string) {
		fmt.Fprintf(b, "| %s |\n", strings.Join(fields, " | "))
	}
	writeLine(g.Head)
	b.WriteString(strings.Repeat("|---", len(g.Head)) + "|\n")
	for _, row := range g.Rows {
		writeLine(mapOf(row, func(e entry) string {
			return strings.ReplaceAll(strings.TrimSpace(e.Text+" "+e.Spread), "*", `\*`)
		}))
	}
}
