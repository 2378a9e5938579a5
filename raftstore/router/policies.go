package router

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
)

// comparePoliciesEvery is how often the node that leads the first group compares the policies of all groups.
const comparePoliciesEvery = 500 * time.Millisecond

// keepPolicies gives every group the policies of the first one, on the node that leads the first group. A change
// reaches all groups by itself; see changePolicies. keepPolicies repairs the differences that remain after a failure
// between two groups, or after two changes at the same time.
func (r *Router) keepPolicies() {
	tick := time.NewTicker(comparePoliciesEvery)
	defer tick.Stop()
	suspects := make([]bool, len(r.all()))
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.repairPolicies(suspects)
		}
	}
}

// repairPolicies changes the policies of groups that differed from the first group at the last call as well. A
// difference that was not there before may be a change on its way.
func (r *Router) repairPolicies(suspects []bool) {
	lead := r.all()[0]
	if !lead.Topology().Leads() {
		clear(suspects)
		return
	}
	for i, g := range r.all()[1:] {
		differs := len(difference(lead.Policies(), g.Policies(), lead.Now().NowNs)) > 0
		again := differs && suspects[i+1]
		suspects[i+1] = differs
		if again {
			r.repairGroup(i+1, g)
		}
	}
}

// repairGroup gives a group the policies of the first one. Both are read after a ReadIndex, so that neither a deposed
// leader nor a follower that lags undoes a correct change.
func (r *Router) repairGroup(number int, g Group) {
	lead := r.all()[0]
	if lead.ReadIndex() != nil || g.ReadIndex() != nil {
		return
	}
	have := g.Policies()
	ops := difference(lead.Policies(), have, lead.Now().NowNs)
	if len(ops) == 0 {
		return
	}
	err := repair(g, have, ops)
	r.log.Warn("the policies of a group differed from those of the first group and were repaired",
		"group", number, "changes", len(ops), "error", err)
}

// repair carries out the changes of each policy at once, if the policy is still the one that was compared. A change of
// a client that arrives in between therefore stays.
func repair(g Group, have *engine.Policies, ops []engine.Op) (err error) {
	for len(ops) > 0 {
		n := 1
		for n < len(ops) && bytes.Equal(ops[n].Key, ops[0].Key) {
			n++
		}
		ops[0].Policy.If = true
		if p := have.Get(ops[0].Key); p != nil {
			ops[0].Policy.Version = p.Version
		}
		err = errors.Join(err, g.DecideAtomic(ops[:n], make([]engine.Decision, n)))
		ops = ops[n:]
	}
	return err
}

// difference returns the changes that make the policies of have equal to those of want. It ignores versions, which
// each group counts alone, and differences of at most clockDifference between the ends of overrides.
func difference(want, have *engine.Policies, nowNs int64) (ops []engine.Op) {
	if want == have {
		return nil
	}
	for _, p := range have.All() {
		if want.Get([]byte(p.Name)) == nil {
			ops = append(ops, change(p.Name, engine.PolicyChange{Do: engine.PolicyDelete}))
		}
	}
	for _, p := range want.All() {
		ops = append(ops, differenceOf(p, have.Get([]byte(p.Name)), nowNs)...)
	}
	return ops
}

// differenceOf returns the changes that make have, which may be nil, the policy want.
func differenceOf(want, have *engine.Policy, nowNs int64) (ops []engine.Op) {
	if have == nil || !bytes.Equal(terms(want), terms(have)) {
		t := *want
		t.Overrides = nil
		ops = append(ops, change(want.Name, engine.PolicyChange{Do: engine.PolicySet, Terms: &t, Own: true}))
	}
	var had []engine.Override
	if have != nil {
		had = have.Overrides
	}
	for _, o := range had {
		if o.UntilNs > nowNs &&
			!slices.ContainsFunc(want.Overrides, func(w engine.Override) bool { return same(w, o) }) {
			ops = append(ops, override(want.Name, engine.PolicyUnoverride, o, 0))
		}
	}
	for _, o := range want.Overrides {
		left := o.UntilNs - nowNs
		if left <= 0 || slices.ContainsFunc(had, func(h engine.Override) bool { return same(o, h) }) {
			continue
		}
		if o.UntilNs == engine.Never {
			left = 0
		}
		ops = append(ops, override(want.Name, engine.PolicyOverride, o, left))
	}
	return ops
}

// terms returns the encoding of a policy without its version and its overrides.
func terms(p *engine.Policy) []byte {
	plain := *p
	plain.Version, plain.Overrides = 0, nil
	return plain.Append(nil)
}

// clockDifference bounds the difference between the ends of one override in two groups. The clocks of the groups
// differ, and so do the times at which they apply the change.
const clockDifference = 10 * time.Second

// same reports whether two overrides have the same pattern and limits, and about the same end.
func same(a, b engine.Override) bool {
	apart := a.UntilNs - b.UntilNs
	return a.Pattern == b.Pattern && bytes.Equal(encoded(a.Limits), encoded(b.Limits)) &&
		(a.UntilNs == engine.Never) == (b.UntilNs == engine.Never) && max(apart, -apart) <= int64(clockDifference)
}

func encoded(limits []engine.PolicyLimit) []byte { return (&engine.Policy{Limits: limits}).Append(nil) }

func change(name string, c engine.PolicyChange) engine.Op {
	return engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &c}
}

func override(name string, do engine.PolicyDo, o engine.Override, leftNs int64) engine.Op {
	o.UntilNs = engine.Never
	op := change(name, engine.PolicyChange{Do: do, Terms: &engine.Policy{Overrides: []engine.Override{o}}})
	op.TTLNs = leftNs
	return op
}
