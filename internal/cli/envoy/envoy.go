// Package envoy checks and shows configurations of Envoy's rate limit service, without a server.
package envoy

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/server/envoyrls/rules"
)

// Command works on configurations of Envoy's rate limit service.
type Command struct {
	Check CheckCmd `cmd:"" help:"Check the files that weir serve --envoy-config would read, and show their limits. Exit code 1 if a file has an error."`
}

// CheckCmd checks files.
type CheckCmd struct {
	Paths        []string `arg:"" name:"path" help:"A file, or a directory of files whose names end in .yaml or .yml."`
	MergeDomains bool     `env:"-" help:"Allow several files of one domain."`
	JSON         bool     `env:"-" name:"json" help:"Print JSON."`
}

// Limit is a limit as it is shown.
type Limit struct {
	Path            string   `json:"path"` // the domain and the descriptors
	RequestsPerUnit uint32   `json:"requests_per_unit"`
	Unit            string   `json:"unit"` // "" if it is unlimited
	Name            string   `json:"name"`
	Replaces        []string `json:"replaces"`
	Flags           []string `json:"flags"`
}

func (c *CheckCmd) Run() error { return c.Check(os.Stdout) }

// Check writes the limits, or returns the errors of all files.
func (c *CheckCmd) Check(w io.Writer) error {
	files, err := rules.Open(c.Paths)
	if err != nil {
		return err
	}
	config, err := rules.Parse(files, c.MergeDomains)
	if err != nil {
		return err
	}
	limits := []Limit{}
	for _, r := range config.Rules() {
		limits = append(limits, limitOf(r))
	}
	if c.JSON {
		return terminal.WriteJSON(w, limits)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range limits {
		fmt.Fprintln(t, terminal.PlainText(l.Path)+"\t"+l.amount()+"\t"+terminal.PlainText(l.notes()))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "files: %d, domains: %d, limits: %d\n", len(files), config.Len(), len(limits))
	return err
}

func limitOf(r *rules.Rule) Limit {
	l := Limit{Path: r.Path, Name: r.Name, Replaces: append([]string{}, r.Replaces...), Flags: r.Flags()}
	if !r.Unlimited {
		l.RequestsPerUnit, l.Unit = r.RequestsPerUnit, strings.ToLower(r.Unit.String())
	}
	return l
}

func (l *Limit) amount() string {
	if l.Unit == "" {
		return "unlimited"
	}
	return fmt.Sprintf("%d per %s", l.RequestsPerUnit, l.Unit)
}

func (l *Limit) notes() string {
	notes := append([]string{}, l.Flags...)
	if l.Name != "" {
		notes = append(notes, "name "+l.Name)
	}
	if len(l.Replaces) > 0 {
		notes = append(notes, "replaces "+strings.Join(l.Replaces, " "))
	}
	return strings.Join(notes, ", ")
}
