package engine

import (
	"bytes"
	"fmt"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/store"
)

// ready prepares a policy for the checks of this table.
func (t *Table) ready(p *Policy, counts *tally) *Policy {
	p.hash = t.hashPolicy([]byte(p.Name))
	return p.ready(counts)
}

// Policies returns the policies in force as an immutable set.
func (t *Table) Policies() *Policies { return t.policies.Load() }

// changePolicy carries out an OpPolicy. The caller holds the locks of all shards, so no decision observes a
// partial change.
func (t *Table) changePolicy(at Stamp, op *Op, d *Decision) {
	set := t.policies.Load()
	old, change := set.Get(op.Key), op.Policy
	replaced := t.changed(set, at, op, d)
	if d.Status != OK {
		return
	}
	d.Limit = int64(t.order.policyChanged(op, d.Allowed > 0, old, replaced.Get(op.Key)))
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
		t.forgetUsage(forgottenUsage{old.Name, keep})
	}
}

// changed computes an OpPolicy without carrying it out. It fills in the answer and returns the new set, or the
// same set if nothing changes.
func (t *Table) changed(set *Policies, at Stamp, op *Op, d *Decision) *Policies {
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
	next := change.apply(old, string(op.Key), at.NowNs, op.TTLNs)
	if next == nil {
		d.Allowed = 1
		return set.without(old.Name)
	}
	if old != nil && t.Rules() >= RulesDefinitions {
		now := rule.Moment{AtNs: at.NowNs, Version: old.Version + 1}
		if next.follow(old, boundary{now, at.WallOffsetNs}); change.Reset { // no usage is left
			next.past, next.horizon = nil, boundary{}
		}
	}
	next = next.ready(next.tally)
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
	if replaced.bytes > MaxPolicyBytes && len(next.past) > 0 { // history must not refuse a change
		next.forgetPast(len(next.past))
		replaced = set.with(t.ready(next, counts))
	}
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

// versionOf returns the version of a policy, 0 for nil.
func versionOf(p *Policy) uint64 {
	if p == nil {
		return 0
	}
	return p.Version
}

// rehearse reports whether an atomic batch may be carried out. A batch with a conditional change of a policy is
// carried out whole or not at all. If one of its policy changes is refused, rehearse answers that change with
// the reason, and all other operations with Abandoned.
func (t *Table) rehearse(at Stamp, ops []Op, out []Decision) bool {
	if !conditional(ops) {
		return true
	}
	set := t.policies.Load()
	for i := range ops {
		if ops[i].Code != OpPolicy {
			continue
		}
		if set = t.changed(set, at, &ops[i], &out[i]); out[i].Status != OK {
			for k := range ops {
				if k != i {
					out[k] = Decision{Status: Abandoned}
				}
			}
			return false
		}
	}
	return true
}

// conditional reports whether an operation is a conditional change of a policy.
func conditional(ops []Op) bool {
	for i := range ops {
		if ops[i].Code == OpPolicy && ops[i].Policy.If {
			return true
		}
	}
	return false
}

// policyChanged records that a policy must be stored, or removed from the store.
func (t *Table) policyChanged(name string) {
	if !t.opts.TrackChanges {
		return
	}
	t.policyMu.Lock()
	defer t.policyMu.Unlock()
	if t.policiesChanged == nil {
		t.policiesChanged = map[string]struct{}{}
	}
	t.policiesChanged[name] = struct{}{}
}

// drainPolicies adds the changed policies to a batch. It takes the names before it reads the set. A change
// between these two steps is recorded again, so the next drain contains it.
func (t *Table) drainPolicies(b *store.Batch) {
	t.policyMu.Lock()
	changed := t.policiesChanged
	t.policiesChanged = nil
	t.policyMu.Unlock()
	set := t.policies.Load()
	for name := range changed {
		b.Add(policyClass, name, func(to []byte) []byte {
			if p := set.byName[name]; p != nil {
				to = p.appendStored(to)
			}
			return to
		})
	}
}

// loadPolicy adds a stored policy to the table.
func (t *Table) loadPolicy(name string, value []byte) error {
	p, err := decodeStored(name, value)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStored, err)
	}
	t.policyMu.Lock() // Load may run in many goroutines
	defer t.policyMu.Unlock()
	t.policies.Store(t.policies.Load().with(t.ready(p, nil)))
	return nil
}

// forgetUsage records forgotten usage in all shards. The caller holds their locks.
func (t *Table) forgetUsage(what forgottenUsage) {
	for i := range t.shards {
		s := &t.shards[i]
		if s.forgotten = append(s.forgotten, what); len(s.forgotten) >= maxForgotten {
			s.forgetUsage()
		}
	}
}

// changesOnly reports whether all operations change policies or empty databases, and look up no limiter.
func changesOnly(ops []Op) bool {
	for i := range ops {
		if ops[i].Code != OpPolicy && ops[i].Code != OpFlush {
			return false
		}
	}
	return true
}

func (t *Table) renewPolicies() {
	for _, p := range t.policies.Load().All() {
		t.policyChanged(p.Name)
	}
	t.order.renew()
}
