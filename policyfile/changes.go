package policyfile

import (
	"bytes"

	"github.com/weir-project/weir/engine"
)

// Changes returns the operations that bring the policies that are in force to what the
// file says, and leaves out what is so already. Policies and overrides that the file
// does not name stay.
func (f *File) Changes(now *engine.Policies) (ops []engine.Op) {
	for i := range f.Policies {
		p := &f.Policies[i]
		there := now.Get([]byte(p.Name))
		if there == nil || !sameTerms(there, p.Set.Policy.Terms) {
			ops = append(ops, p.Set)
		}
		for _, o := range p.Overrides {
			if there == nil || !hasOverride(there, &o.Policy.Terms.Overrides[0]) {
				ops = append(ops, o)
			}
		}
	}
	return ops
}

// sameTerms compares what RL.POLICY SET sets.
func sameTerms(a, b *engine.Policy) bool {
	bare := func(p *engine.Policy) []byte {
		return (&engine.Policy{Limits: p.Limits, Shadow: p.Shadow, Disabled: p.Disabled, RetryNs: p.RetryNs, Reserved: p.Reserved}).Append(nil)
	}
	return bytes.Equal(bare(a), bare(b))
}

// hasOverride reports whether a policy has the override; its end does not matter.
func hasOverride(p *engine.Policy, o *engine.Override) bool {
	for i := range p.Overrides {
		if there := &p.Overrides[i]; there.Pattern == o.Pattern {
			return bytes.Equal((&engine.Policy{Limits: there.Limits}).Append(nil), (&engine.Policy{Limits: o.Limits}).Append(nil))
		}
	}
	return false
}
