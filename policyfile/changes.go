package policyfile

import (
	"bytes"

	"github.com/weir-project/weir/engine"
)

// Changes returns the operations that bring the policies in force, now, to the state of the file. It omits operations
// that would change nothing. An override that has ended at the limiter time nowNs is missing. Policies and overrides
// that the file does not name stay. A policy that the file names but that has another owner stays as well, and
// foreign has its name.
func (f *File) Changes(now *engine.Policies, nowNs int64) (ops []engine.Op, foreign []string) {
	for i := range f.Policies {
		p := &f.Policies[i]
		there := now.Get([]byte(p.Name))
		if there != nil && there.Owner != "" && there.Owner != f.Owner {
			foreign = append(foreign, p.Name)
			continue
		}
		if there == nil || there.Owner != f.Owner || !sameTerms(there, p.Set.Policy.Terms) {
			ops = append(ops, p.owned(f.Owner))
		}
		for _, o := range p.Overrides {
			if there == nil || !hasOverride(there, &o, nowNs) {
				ops = append(ops, o)
			}
		}
	}
	return ops, foreign
}

// owned returns the operation that sets the policy's terms and owner. If owner is empty, the operation does not mention
// an owner, so that every version of weir can read it.
func (p *Policy) owned(owner string) engine.Op {
	if owner == "" {
		return p.Set
	}
	set, change, terms := p.Set, *p.Set.Policy, *p.Set.Policy.Terms
	terms.Owner, change.Own, change.Terms, set.Policy = owner, true, &terms, &change
	return set
}

// sameTerms compares everything that a file says of two policies, apart from their owners and overrides.
func sameTerms(a, b *engine.Policy) bool {
	bare := func(p *engine.Policy) []byte {
		return (&engine.Policy{Limits: p.Limits, Shadow: p.Shadow, Disabled: p.Disabled, RetryNs: p.RetryNs,
			Reserved: p.Reserved, Layout: p.Layout, ReportNs: p.ReportNs, Record: p.Record}).Append(nil)
	}
	return bytes.Equal(bare(a), bare(b))
}

// hasOverride reports whether a policy has the override that an operation sets, with or without an expiry as there. It
// ignores when the override ends.
func hasOverride(p *engine.Policy, op *engine.Op, nowNs int64) bool {
	o := &op.Policy.Terms.Overrides[0]
	for i := range p.Overrides {
		if there := &p.Overrides[i]; there.Pattern == o.Pattern && there.UntilNs > nowNs {
			return (there.UntilNs == engine.Never) == (op.TTLNs == 0) &&
				bytes.Equal((&engine.Policy{Limits: there.Limits}).Append(nil),
					(&engine.Policy{Limits: o.Limits}).Append(nil))
		}
	}
	return false
}
