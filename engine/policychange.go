package engine

import (
	"bytes"
	"slices"
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
}

// Sound reports whether a table can carry the change out for the policy of this name.
func (c *PolicyChange) Sound(name []byte) bool {
	if c.Do >= numPolicyDos || !soundName(string(name)) {
		return false
	}
	switch c.Do {
	case PolicySet:
		return c.Terms != nil && len(c.Terms.Overrides) == 0 && c.validAs(name)
	case PolicyOverride, PolicyUnoverride:
		return c.Terms != nil && len(c.Terms.Overrides) == 1 && c.validAs(name)
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
	*d = Decision{}
	set := t.policies.Load()
	old, change := set.Get(op.Key), op.Policy
	if old == nil && change.Do == PolicyDelete {
		return
	}
	if old == nil && change.Do != PolicySet {
		d.Status = UnknownPolicy
		return
	}
	next := change.apply(old, string(op.Key), nowNs, op.TTLNs)
	if next != nil && old != nil && bytes.Equal(next.Append(nil), old.Append(nil)) {
		if d.Remaining = int64(old.Version); change.Reset {
			d.Allowed = 1
			t.forgetUsage(gone{old.Name, 0})
		}
		return
	}
	t.swap(set, old, next, change, d)
}

// swap puts the policy next, or none, in the place of old.
func (t *Table) swap(set *Policies, old, next *Policy, change *PolicyChange, d *Decision) {
	name, keep, replaced := "", 0, set
	if next == nil {
		name, replaced = old.Name, set.without(old.Name)
	} else {
		name, keep = next.Name, next.most()
		var counts *tally
		if old != nil {
			counts = old.tally
		}
		next.Version++
		if replaced = set.with(t.ready(next, counts)); replaced.bytes > MaxPolicyBytes || replaced.Len() > MaxPolicies || next.Validate() != nil {
			d.Status = PoliciesFull
			return
		}
		d.Remaining = int64(next.Version)
	}
	d.Allowed = 1
	t.policies.Store(replaced)
	t.policyChanged(name)
	if change.Reset {
		keep = 0
	}
	if old != nil && keep < old.most() {
		t.forgetUsage(gone{name, keep})
	}
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
	case PolicyEnable, PolicyDisable:
		next.Disabled = c.Do == PolicyDisable
	case PolicyShadowOn, PolicyShadowOff:
		next.Shadow = c.Do == PolicyShadowOn
	case PolicyOverride, PolicyUnoverride:
		o := c.Terms.Overrides[0]
		next.Overrides = slices.DeleteFunc(next.Overrides, func(other Override) bool { return other.Pattern == o.Pattern })
		if o.UntilNs = Never; ttlNs > 0 {
			o.UntilNs = addNs(nowNs, ttlNs)
		}
		if c.Do == PolicyOverride {
			next.Overrides = append(next.Overrides, o)
		}
	}
	return next.ready(next.tally)
}
