package bench

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageText string

// pageSection is a part of the page: charts, a table and remarks.
type pageSection struct {
	Name, About string
	Charts      []chart
	Grid        grid
	Remarks     []string
}

// WriteHTML writes a self-contained page that needs no network: charts, the tables of WriteTable, versions and
// commands.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{"join": shellLine}).Parse(pageText)
	if err != nil {
		return err
	}
	sections := mapOf(r.Scenarios, func(s ScenarioReport) pageSection {
		return pageSection{s.Name, s.About + ", cells of " + s.CellTime, s.charts(), s.grid(), s.remarks()}
	})
	if s := r.Snapshots; s != nil {
		sections = append(sections, pageSection{"Snapshots under load", s.about(), nil, s.grid(), s.remarks()})
	}
	return page.Execute(w, map[string]any{
		"Report": r, "Targets": r.targetsGrid(), "Results": resultsGrid(r.Results), "Sections": sections,
	})
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
