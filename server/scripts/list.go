package scripts

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteDialects writes the recognised scripts, for a terminal or as a Markdown table.
func WriteDialects(w io.Writer, markdown bool) error {
	if markdown {
		return writeDialects(w, "| library | script | releases | SHA-1 |\n|---|---|---|---|\n",
			"| %s | %s | %s | `%s` |\n")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if err := writeDialects(table, "LIBRARY\tSCRIPT\tRELEASES\tSHA-1\n", "%s\t%s\t%s\t%s\n"); err != nil {
		return err
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

func writeDialects(w io.Writer, head, row string) error {
	var b strings.Builder
	b.WriteString(head)
	for _, d := range Dialects() {
		fmt.Fprintf(&b, row, d.Library+" ("+d.Registry+")", d.Script, d.Releases, d.SHA1)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
