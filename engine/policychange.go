package engine

import (
	"bytes"
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
)

// PolicyDo says what an OpPolicy does to the policy that Op.Key names.
type PolicyDo uint8

// The changes of a policy. Those after PolicySet need a policy that exists.
const (
	PolicySet        PolicyDo = iota // make it, or give it other terms; overrides stay
	PolicyDelete                     // and forget its usage
	PolicyEnable                     // end Disabled
	PolicyDisable                    // begin Disabled
	PolicyShadowOn                   // begin Shadow
	PolicyShadowOff                  // end Shadow
	PolicyOverride                   // give Terms.Overrides[0].Pattern other limits, for Op.TTLNs
	PolicyUnoverride                 // take that override back
	numPolicyDos
)

// PolicyChange is the argument of OpPolicy.
type PolicyChange struct {
	Do    PolicyDo
	Reset bool    // forget the usage of the policy as well
	Terms *Policy // PolicySet and the overrides; its Name and Version do not matter
	Own   bool    // PolicySet: Terms.Owner becomes the owner; else the owner stays
	// If makes the change conditional: the policy must have this Version, 0 for no policy of
	// this name. See Table.rehearse for the operations beside it.
	If      bool
	Version uint64
}

// Sound reports whether a table can carry the change out for the policy of this name.
func (c *PolicyChange) Sound(name []byte) bool {
	if c.Do >= numPolicyDos || !soundName(string(name)) {
		return false
	}
	if !c.If && c.Version != 0 || c.Own && c.Do != PolicySet || !c.Own && c.Terms != nil && c.Terms.Owner != "" {
		return false
	}
	switch c.Do {
	case PolicySet:
		return c.Terms != nil && len(c.Terms.Overrides) == 0 && c.validAs(name)
	case PolicyOverride, PolicyUnoverride:
		return c.Terms != nil && len(c.Terms.Overrides) == 1 && c.Terms.Layout == "" && c.Terms.ReportNs == 0 && c.validAs(name)
	}
	return c.Terms == nil
}

func (c *PolicyChange) validAs(name []byte) bool {
	p := *c.Terms
	p.Name = string(name)
	if c.Do != PolicySet {
		p.Limits = []PolicyLimit{{Limit: Limit{Algorithm: SlidingCounter, WindowNs: 1, Max: 1}}}
	}
	return p.Validate() == nil
}

// Policies returns the policies in force. What it returns does not change.
func (t *Table) Policies() *Policies { return t.policies.Load() }

// changePolicy carries out an OpPolicy. The caller has locked all shards, so that no
// decision sees a part of the change.
func (t *Table) changePolicy(nowNs int64, op *Op, d *Decision) {
	set := t.policies.Load()
	old, change := set.Get(op.Key), op.Policy
	replaced := t.changed(set, nowNs, op, d)
	if d.Allowed == 0 {
		return
	}
	keep := 0
	if next := replaced.Get(op.Key); next != nil && !change.Reset {
		keep = next.most()
	}
	if replaced != set {
		t.policies.Store(replaced)
		t.policyChanged(string(op.Key))
	}
	if old != nil && keep < old.most() {
		t.forgetUsage(gone{old.Name, keep})
	}
}

// changed answers an OpPolicy and returns the set as it leaves it: the same when nothing
// changes. It has no other effect.
func (t *Table) changed(set *Policies, nowNs int64, op *Op, d *Decision) *Policies {
	*d = Decision{}
	old, change := set.Get(op.Key), op.Policy
	switch {
	case change.If && change.Version != versionOf(old):
		d.Status = PolicyChanged
		return set
	case old == nil && change.Do == PolicyDelete:
		return set
	case old == nil && change.Do != PolicySet:
		d.Status = UnknownPolicy
		return set
	}
	next := change.apply(old, string(op.Key), nowNs, op.TTLNs)
	if next == nil {
		d.Allowed = 1
		return set.without(old.Name)
	}
	if old != nil && bytes.Equal(next.Append(nil), old.Append(nil)) {
		d.Allowed, d.Remaining = arith.OneIf(change.Reset), int64(old.Version)
		return set
	}
	var counts *tally
	if old != nil {
		counts = old.tally
	}
	next.Version++
	replaced := set.with(t.ready(next, counts))
	if replaced.bytes > MaxPolicyBytes || replaced.Len() > MaxPolicies || next.Validate() != nil {
		d.Status = PoliciesFull
		return set
	}
	if replaced.LayoutTaken(next.Name, next.Layout) != nil {
		d.Status = LayoutTaken
		return set
	}
	d.Allowed, d.Remaining = 1, int64(next.Version)
	return replaced
}

// versionOf is the version of a policy, 0 for none.
func versionOf(p *Policy) uint64 {
	if p == nil {
		return 0
	}
	return p.Version
}

// apply returns the policy as the change leaves it, with the version it had; nil when
// it is gone.
func (c *PolicyChange) apply(old *Policy, name string, nowNs, ttlNs int64) *Policy {
	next := &Policy{Name: name}
	if old != nil {
		*next = *old
		next.Overrides = slices.DeleteFunc(slices.Clone(old.Overrides), func(o Override) bool { return o.UntilNs <= nowNs })
	}
	switch c.Do {
	case PolicyDelete:
		return nil
	case PolicySet:
		t := c.Terms
		next.Limits, next.Shadow, next.Disabled, next.RetryNs, next.Reserved = t.Limits, t.Shadow, t.Disabled, t.RetryNs, t.Reserved
		next.Layout, next.ReportNs = t.Layout, t.ReportNs
		if c.Own {
			next.Owner = t.Owner
		}
	case PolicyEnable, PolicyDisable:
		next.Disabled = c.Do == PolicyDisable
	case PolicyShadowOn, PolicyShadowOff:
		next.Shadow = c.Do == PolicyShadowOn
	case PolicyOverride, PolicyUnoverride:
		o := c.Terms.Overrides[0]
		next.Overrides = slices.DeleteFunc(next.Overrides, func(other Override) bool { return other.Pattern == o.Pattern })
		if o.UntilNs = Never; ttlNs > 0 {
			o.UntilNs = arith.AddNs(nowNs, ttlNs)
		}
		if c.Do == PolicyOverride {
			next.Overrides = append(next.Overrides, o)
		}
	}
	return next.ready(next.tally)
}
