package top

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/server/httpapi"
)

const (
	// unbounded is the width and the height of an output that is not a screen.
	unbounded = math.MaxInt
	// narrowWidth is the width below which tables are stacked and policies have no totals. Two tables of keys take
	// about 40 columns each.
	narrowWidth = 80
)

// fit lays out the view on a screen. The head and the nodes come first; keys and policies share the remaining height.
// Policies get half of it, or the rows that keys do not need. Each table keeps at least one key.
func (v *view) fit(width, height int) []string {
	var lines []string
	for _, line := range v.head() {
		lines = append(lines, wrap(line, width)...)
	}
	lines = append(lines, v.nodes()...)
	lines = append(lines, v.events(min(maxEvents, (height-len(lines))/eventShare))...)
	tables := v.heaviest()
	left := max(height-len(lines), 0)
	least := len(beside(tables, 1, width))
	forPolicies := max(min(left/2, left-least), left-len(beside(tables, unbounded, width)))
	policies := v.policies(width, forPolicies)
	lines = append(lines, policies...)
	for most := maxRows; most > 0; most-- {
		if keys := beside(tables, most, width); len(keys) <= left-len(policies) || most == 1 {
			return append(lines, keys...)
		}
	}
	return lines
}

// maxEvents bounds the events on a screen. One line of eventShare has an event.
const maxEvents, eventShare = 3, 8

// maxRows bounds the keys in a table. A status has no more.
const maxRows = 10

// keyTable is a title and keys with their units.
type keyTable struct {
	title string
	keys  []httpapi.TopKey
}

// heaviest returns the tables of keys that are not empty.
func (v *view) heaviest() []keyTable {
	var tables []keyTable
	for _, t := range []keyTable{{"MOST DENIED", v.now.Denied}, {"MOST ADMITTED", v.now.Admitted}} {
		if len(t.keys) > 0 {
			tables = append(tables, keyTable{t.title + " (half-life 1 min)", t.keys})
		}
	}
	return tables
}

func (t keyTable) lines(most int) []string {
	rows := []string{"UNITS\t" + t.title}
	for _, k := range t.keys[:min(len(t.keys), most)] {
		row := fmt.Sprintf("%d\t%s", k.Units, terminal.PlainText(k.Key))
		if k.Holds > 0 {
			row += fmt.Sprintf(": %d of %d used, open holds: %d", k.Used, k.Limit, k.Holds)
		}
		rows = append(rows, row)
	}
	return append([]string{""}, rightAligned(rows)...)
}

// beside sets two tables of keys next to each other if the screen is wide enough.
func beside(tables []keyTable, most, width int) []string {
	var lines []string
	if len(tables) < 2 || width < narrowWidth {
		for _, t := range tables {
			lines = append(lines, t.lines(most)...)
		}
		return lines
	}
	left, right, half := tables[0].lines(most), tables[1].lines(most), width/2
	for i := range max(len(left), len(right)) {
		line := ""
		if i < len(left) {
			line = cut(left[i], half-2)
		}
		if i < len(right) && right[i] != "" {
			line += strings.Repeat(" ", half-utf8.RuneCountInString(line)) + right[i]
		}
		lines = append(lines, line)
	}
	return lines
}

// rightAligned formats rows of tab-separated cells as columns: numbers and, last, a name.
func rightAligned(rows []string) []string {
	spaced := make([]string, len(rows))
	for i, row := range rows {
		at := strings.LastIndexByte(row, '\t') + 1
		spaced[i] = row[:at] + "  " + row[at:] // the text after the last tab is in no column
	}
	lines := columns(spaced, tabwriter.AlignRight)
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ") // the first column needs no space before it
	}
	return lines
}

// columns formats rows of tab-separated cells as columns.
func columns(rows []string, flags uint) []string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', flags)
	for _, row := range rows {
		fmt.Fprintln(t, row)
	}
	_ = t.Flush() // writes to memory
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// headIndent is the column at which the text of a head line begins.
const headIndent = 10

// wrap breaks a head line between words.
func wrap(line string, width int) []string {
	if width <= 2*headIndent {
		return []string{line}
	}
	var lines []string
	for utf8.RuneCountInString(line) > width {
		runes := []rune(line)
		at := width
		for at > headIndent && runes[at] != ' ' {
			at--
		}
		if at == headIndent { // a word that is longer than the line
			at = width
		}
		lines = append(lines, string(runes[:at]))
		line = strings.Repeat(" ", headIndent) + strings.TrimPrefix(string(runes[at:]), " ")
	}
	return append(lines, line)
}
