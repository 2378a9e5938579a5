package policyfile

import (
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/engine"
)

// The fields of a file, in the order in which Write writes them.
type (
	fileOut struct {
		Owner    string    `yaml:"owner,omitempty"`
		Policies yaml.Node `yaml:"policies"`
	}
	policyOut struct {
		Limits     []string      `yaml:"limits"`
		Shadow     bool          `yaml:"shadow,omitempty"`
		Disabled   bool          `yaml:"disabled,omitempty"`
		RetryAfter string        `yaml:"retry_after,omitempty"`
		Reserved   string        `yaml:"reserved,omitempty"`
		Layout     string        `yaml:"layout,omitempty"`
		Report     string        `yaml:"report,omitempty"`
		Record     bool          `yaml:"record,omitempty"`
		Overrides  []overrideOut `yaml:"overrides,omitempty"`
	}
	overrideOut struct {
		Key       string   `yaml:"key"`
		Limits    []string `yaml:"limits,omitempty"`
		Unlimited bool     `yaml:"unlimited,omitempty"`
		TTL       string   `yaml:"ttl,omitempty"`
	}
)

// Write writes policies as a file that Read accepts. owner is the owner in the file; empty means none. Write omits
// expired overrides.
func Write(w io.Writer, owner string, all []Terms) error {
	out := fileOut{Owner: owner, Policies: yaml.Node{Kind: yaml.MappingNode}}
	for i := range all {
		var name, terms yaml.Node
		name.SetString(all[i].Name)
		if err := terms.Encode(all[i].out()); err != nil {
			return err
		}
		out.Policies.Content = append(out.Policies.Content, &name, &terms)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(out); err != nil {
		return err
	}
	return e.Close()
}

func (t *Terms) out() policyOut {
	p := policyOut{Limits: t.Limits, Shadow: t.Shadow, Disabled: t.Disabled, RetryAfter: durationText(t.RetryAfterMs),
		Layout: t.Layout, Record: t.Record}
	if t.Reserved != "0%" {
		p.Reserved = t.Reserved
	}
	if t.reports() {
		p.Report = t.Report
	}
	for _, o := range t.Overrides {
		if o.TTLMs != 0 {
			p.Overrides = append(p.Overrides, overrideOut{o.Key, o.Limits, len(o.Limits) == 0, durationText(o.TTLMs)})
		}
	}
	return p
}

// durationText formats milliseconds. It returns "" for zero or less.
func durationText(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return engine.FormatDuration(ms * 1e6)
}
