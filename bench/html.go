package bench

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageText string

// pageScenario is what the page shows of a scenario.
type pageScenario struct {
	Name, About string
	Charts      []chart
	Table       string
}

// WriteHTML writes a page that needs no other file and no network: charts, the tables of
// WriteTable, versions and commands.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{"join": shellLine}).Parse(pageText)
	if err != nil {
		return err
	}
	var results, snapshots strings.Builder
	if err := writeResults(&results, r.Results); err != nil {
		return err
	}
	if r.Snapshots != nil {
		if err := r.Snapshots.write(&snapshots); err != nil {
			return err
		}
	}
	var all []pageScenario
	for _, s := range r.Scenarios {
		var table strings.Builder
		if err := s.write(&table); err != nil {
			return err
		}
		all = append(all, pageScenario{s.Name, s.About, s.charts(), strings.TrimSpace(table.String())})
	}
	return page.Execute(w, map[string]any{
		"Report": r, "Scenarios": all, "Results": strings.TrimSpace(results.String()),
		"Snapshots": strings.TrimSpace(snapshots.String()),
	})
}

// shellLine writes a command as a shell takes it.
func shellLine(args []string) string {
	return strings.Join(mapOf(args, func(arg string) string {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"$&|;<>()*?[]{}#~\\") {
			return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		return arg
	}), " ")
}
