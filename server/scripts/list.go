package scripts

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteDialects writes the recognised scripts as a table for a terminal.
func WriteDialects(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "LIBRARY\tSCRIPT\tRELEASES\tSHA-1\n")
	for _, d := range Dialects() {
		fmt.Fprintf(table, "%s (%s)\t%s\t%s\t%s\n", d.Library, d.Registry, d.Script, d.Releases, d.SHA1)
	}
	return table.Flush()
}

// Dialect is one script of a limiter library, as lists show it.
type Dialect struct {
	Library  string `json:"library"`
	Registry string `json:"registry"`
	Script   string `json:"script"`
	Releases string `json:"releases"`
	SHA1     string `json:"sha1"`
}

// Dialects lists the recognised scripts.
func Dialects() (all []Dialect) {
	for _, d := range dialects() {
		for _, sc := range d.scripts {
			for _, text := range sc.texts {
				all = append(all, Dialect{d.name, d.registry, sc.Name, text.releases, text.sha1})
			}
		}
	}
	return all
}
