package rules

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/internal/rlspb"
)

const tooLong = "the keys and values down to a descriptor must have at most %d bytes"

const unitNames = "second, minute, hour, day, week, month or year"

// Config is a checked configuration.
type Config struct {
	domains map[string]*Domain
	rules   []*Rule
}

// Domain has the limits of one domain.
type Domain struct {
	name string
	node
}

// Rule is the limit of one descriptor.
type Rule struct {
	Limit
	Path string // the domain and the descriptors down to this one, like web.user_anna

	ShadowMode, QuotaMode, DetailedMetric bool

	valueToMetric, shareThreshold bool
}

// Flags returns the flags of the descriptor as the configuration names them, in alphabetical order.
func (r *Rule) Flags() []string {
	flags := []string{}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{r.DetailedMetric, "detailed_metric"}, {r.QuotaMode, "quota_mode"}, {r.ShadowMode, "shadow_mode"},
		{r.shareThreshold, "share_threshold"}, {r.valueToMetric, "value_to_metric"},
	} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// node is one descriptor with those below it, or a domain.
type node struct {
	children  map[string]*node // by composite key
	wildcards []*node          // of children, in the order of the configuration
	rule      *Rule            // nil: none

	name                          string // the composite key
	valueToMetric, shareThreshold bool
}

// Build checks sources as one configuration. merge allows several sources for one domain. Where sources of one domain
// have wildcards, the order of the sources is the order in which they are tried.
func Build(sources []Source, merge bool) (*Config, error) {
	b := builder{Config: &Config{domains: map[string]*Domain{}}}
	for i := range sources {
		b.source(&sources[i], merge)
	}
	if err := b.errs.join(); err != nil {
		return nil, err
	}
	return b.Config, nil
}

type builder struct {
	*Config
	file  string
	count int // descriptors
	errs  errorList
}

func (b *builder) fail(line int, path, format string, args ...any) {
	at := b.file
	if line > 0 {
		at = fmt.Sprintf("%s:%d", b.file, line)
	}
	b.errs.add(fmt.Errorf("%s: %s: %s", at, path, fmt.Sprintf(format, args...)))
}

func (b *builder) source(s *Source, merge bool) {
	b.file = s.Name
	d := b.domains[s.Domain]
	switch {
	case s.Domain == "":
		b.fail(0, "domain", "must not be empty")
		return
	case d != nil && !merge:
		b.fail(0, "domain "+s.Domain, "another file has this domain too: put its descriptors into one file, or allow "+
			"several files of one domain")
		return
	case d == nil:
		d = &Domain{name: s.Domain}
		b.domains[s.Domain] = d
	}
	b.descriptors(&d.node, s.Domain, s.Descriptors, 1)
}

func (b *builder) descriptors(n *node, parent string, all []Descriptor, depth int) {
	for i := range all {
		d := &all[i]
		name := d.composite()
		path := parent + "." + name
		switch b.count++; {
		case b.count > MaxDescriptors:
			if b.count == MaxDescriptors+1 {
				b.fail(d.line, path, "a configuration must have at most %d descriptors", MaxDescriptors)
			}
			return
		case depth > MaxDepth:
			b.fail(d.line, path, "descriptors must be at most %d inside each other", MaxDepth)
			return
		case len(path) > MaxPathBytes:
			b.fail(d.line, parent, tooLong, MaxPathBytes)
			continue
		case d.Key == "":
			b.fail(d.line, fmt.Sprintf("%s.descriptors[%d]", parent, i), "key must not be empty")
			continue
		case n.children[name] != nil:
			b.fail(d.line, path, "the configuration has this descriptor twice")
			continue
		case d.ShareThreshold && !strings.HasSuffix(name, "*"):
			b.fail(d.line, path, "share_threshold needs a value that ends with *")
		}
		child := &node{name: name, valueToMetric: d.ValueToMetric, shareThreshold: d.ShareThreshold}
		if d.Limit != nil {
			b.check(d, path)
			child.rule = &Rule{*d.Limit, path, d.ShadowMode, d.QuotaMode, d.DetailedMetric, d.ValueToMetric,
				d.ShareThreshold}
			b.rules = append(b.rules, child.rule)
		}
		if n.children == nil {
			n.children = map[string]*node{}
		}
		n.children[name] = child
		if strings.HasSuffix(name, "*") {
			n.wildcards = append(n.wildcards, child)
		}
		b.descriptors(child, path, d.Descriptors, depth+1)
	}
}

// check reports the errors of a limit.
func (b *builder) check(d *Descriptor, path string) {
	switch l := d.Limit; {
	case l.Unlimited && l.Unit != rlspb.Unit_NONE:
		b.fail(d.line, path, "unlimited must have no unit")
	case !l.Unlimited && l.Unit == rlspb.Unit_NONE:
		b.fail(d.line, path, "unit must be %s", unitNames)
	}
	for _, name := range d.Limit.Replaces {
		switch name {
		case "":
			b.fail(d.line, path, "replaces must have a name")
		case d.Limit.Name:
			b.fail(d.line, path, "replaces must not name %q, the limit itself", name)
		}
	}
}

// Rules returns all limits in the order of the configuration. A nil Config has none.
func (c *Config) Rules() []*Rule {
	if c == nil {
		return nil
	}
	return c.rules
}

// Domain returns a domain, or nil if the configuration has none of that name. A nil Config has no domains.
func (c *Config) Domain(name []byte) *Domain {
	if c == nil {
		return nil
	}
	return c.domains[string(name)]
}

// Len returns the number of domains.
func (c *Config) Len() int { return len(c.domains) }
