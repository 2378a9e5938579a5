package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
)

// PolicyDo selects what an OpPolicy does to the policy named Op.Key.
type PolicyDo uint8

// The changes of a policy. All except PolicySet and PolicyDelete need a policy that exists.
const (
	PolicySet        PolicyDo = iota // create the policy, or change its terms; overrides stay
	PolicyDelete                     // delete the policy and its usage
	PolicyEnable                     // clear Disabled
	PolicyDisable                    // set Disabled
	PolicyShadowOn                   // set Shadow
	PolicyShadowOff                  // clear Shadow
	PolicyOverride                   // give Terms.Overrides[0].Pattern other limits, for Op.TTLNs
	PolicyUnoverride                 // remove that override
	numPolicyDos
)

// PolicyChange is the argument of OpPolicy.
type PolicyChange struct {
	Do    PolicyDo
	Reset bool    // also delete the usage of the policy
	Terms *Policy // for PolicySet and the overrides; Name and Version are ignored
	Own   bool    // PolicySet: set the owner to Terms.Owner; else it stays
	// If makes the change conditional: the policy must have this Version, or must not exist if Version is 0. See
	// Table.rehearse for the other operations of its batch.
	If      bool
	Version uint64
}

// Valid reports whether the change is valid for the policy of this name.
func (c *PolicyChange) Valid(name []byte) bool {
	if c.Do >= numPolicyDos || !validName(string(name)) {
		return false
	}
	if !c.If && c.Version != 0 || c.Own && c.Do != PolicySet || !c.Own && c.Terms != nil && c.Terms.Owner != "" {
		return false
	}
	switch c.Do {
	case PolicySet:
		return c.Terms != nil && len(c.Terms.Overrides) == 0 && c.validAs(name)
	case PolicyOverride, PolicyUnoverride:
		return c.Terms != nil && len(c.Terms.Overrides) == 1 && c.Terms.Layout == "" && c.Terms.ReportNs == 0 &&
			!c.Terms.Record && c.validAs(name)
	}
	return c.Terms == nil
}

// validAs reports whether the terms are valid for a policy of this name. The terms of an override change have no
// limits of the policy, so Validate gets a valid limit in their place.
func (c *PolicyChange) validAs(name []byte) bool {
	p := *c.Terms
	p.Name = string(name)
	if c.Do != PolicySet {
		p.Limits = []PolicyLimit{{Limit: Limit{Algorithm: SlidingCounter, WindowNs: 1, Max: 1}}}
	}
	return p.Validate() == nil
}

// apply returns the policy after the change, with its version before the change. It returns nil if the change
// deletes the policy.
func (c *PolicyChange) apply(old *Policy, name string, nowNs, ttlNs int64) *Policy {
	next := &Policy{Name: name}
	if old != nil {
		*next = *old
		next.Overrides = slices.DeleteFunc(
			slices.Clone(old.Overrides), func(o Override) bool { return o.UntilNs <= nowNs })
	}
	switch c.Do {
	case PolicyDelete:
		return nil
	case PolicySet:
		t := c.Terms
		next.Limits, next.Shadow, next.Disabled = t.Limits, t.Shadow, t.Disabled
		next.RetryNs, next.Reserved = t.RetryNs, t.Reserved
		next.Layout, next.ReportNs, next.Record = t.Layout, t.ReportNs, t.Record
		if c.Own {
			next.Owner = t.Owner
		}
	case PolicyEnable, PolicyDisable:
		next.Disabled = c.Do == PolicyDisable
	case PolicyShadowOn, PolicyShadowOff:
		next.Shadow = c.Do == PolicyShadowOn
	case PolicyOverride, PolicyUnoverride:
		o := c.Terms.Overrides[0]
		next.Overrides = slices.DeleteFunc(
			next.Overrides, func(other Override) bool { return other.Pattern == o.Pattern })
		if o.UntilNs = Never; ttlNs > 0 {
			o.UntilNs = arith.AddNs(nowNs, ttlNs)
		}
		if c.Do == PolicyOverride {
			next.Overrides = append(next.Overrides, o)
		}
	}
	return next
}
