package router

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
)

// difference returns the operations that make the shared items of have those of want, in an order in which each is
// accepted: removals first, and policies that become smaller before those that grow. Without the last comparison it
// compares only the blocks that have changed since the version of have, if they are known.
func difference(want, have *engine.SharedItems, last *comparison) (ops []engine.Op) {
	for _, p := range have.Policies.All() {
		if want.Policies.Get([]byte(p.Name)) == nil {
			ops = append(ops, change(p.Name, engine.PolicyChange{Do: engine.PolicyDelete}))
		}
	}
	ops = append(ops, policyDifference(want, have)...)
	if last == nil {
		if changed, removed, ok := want.BlocksSince(have.Version); ok {
			return append(ops, blockChanges(want, have, slices.Values(changed), slices.Values(removed))...)
		}
	} else if last.covers(want, have) {
		return ops
	}
	return append(ops, blockChanges(want, have, want.Blocks(), func(yield func(string) bool) {
		for b := range have.Blocks() {
			if !yield(b.Key) {
				return
			}
		}
	})...)
}

// policyDifference returns the changes of policies that want has.
func policyDifference(want, have *engine.SharedItems) (ops []engine.Op) {
	growth := func(p *engine.Policy) int {
		n := len(p.Append(nil))
		if old := have.Policies.Get([]byte(p.Name)); old != nil {
			n -= len(old.Append(nil))
		}
		return n
	}
	all := want.Policies.All()
	slices.SortStableFunc(all, func(a, b *engine.Policy) int { return cmp.Compare(growth(a), growth(b)) })
	for _, p := range all { // frees layouts that another policy has now
		old := have.Policies.Get([]byte(p.Name))
		if old != nil && old.Layout != "" && old.Layout != p.Layout && want.Policy(p.Name) != have.Policy(p.Name) {
			bare := *p
			bare.Layout = ""
			ops = append(ops, set(&bare, have.Policy(p.Name).Reset))
		}
	}
	for _, p := range all {
		ops = append(ops, differenceOf(p, want, have)...)
	}
	return ops
}

// differenceOf returns the changes that make the policy of have, which may not exist, the policy of want. Only the last
// one has the version of the item, so that a batch that ends before it is continued.
func differenceOf(p *engine.Policy, want, have *engine.SharedItems) (ops []engine.Op) {
	old, item, was := have.Policies.Get([]byte(p.Name)), want.Policy(p.Name), have.Policy(p.Name)
	changed := old == nil || was.Version != item.Version || was.Reset != item.Reset
	if changed {
		op := set(p, item.Reset)
		op.Policy.Reset = old != nil && was.Version > 0 && was.Reset != item.Reset
		ops = append(ops, op)
	}
	var had []engine.Override
	if old != nil {
		had = old.Overrides
	}
	for _, o := range had {
		if o.UntilNs > have.NowNs &&
			!slices.ContainsFunc(p.Overrides, func(w engine.Override) bool { return w.Pattern == o.Pattern }) {
			ops = append(ops, override(p.Name, engine.PolicyUnoverride, o, 0, item.Reset))
		}
	}
	for _, o := range p.Overrides {
		left := leftNs(o.UntilNs, want.NowNs)
		same := slices.ContainsFunc(had, func(h engine.Override) bool { return sameOverride(&o, &h, left, have.NowNs) })
		if left <= 0 || same && !(changed && o.UntilNs != engine.Never) {
			continue
		}
		if left == engine.Never {
			left = 0
		}
		ops = append(ops, override(p.Name, engine.PolicyOverride, o, left, item.Reset))
	}
	if len(ops) > 0 {
		ops[len(ops)-1].Cost = int64(item.Version)
	}
	return ops
}

// blockChanges returns the changes of blocks everywhere: it compares some blocks of want, and lifts blocks of have that
// want does not have.
func blockChanges(
	want, have *engine.SharedItems, blocks iter.Seq[engine.SharedBlock], keys iter.Seq[string],
) (ops []engine.Op) {
	for key := range keys {
		_, had := have.Block(key)
		if _, there := want.Block(key); had && !there {
			ops = append(ops, engine.Op{Code: engine.OpUnblock, Key: []byte(key), Cost: 1})
		}
	}
	for b := range blocks {
		left := leftNs(b.UntilNs, want.NowNs)
		old, had := have.Block(b.Key)
		if had && old.Version == b.Version && together(left, leftNs(old.UntilNs, have.NowNs)) {
			continue
		}
		ops = append(ops, engine.Op{Code: engine.OpBlockEverywhere, High: true, Key: []byte(b.Key), TTLNs: left,
			Text: []byte(b.Reason), Cost: int64(b.Version)})
	}
	return ops
}

// leftNs returns how long it is until an end, or Never.
func leftNs(untilNs, nowNs int64) int64 {
	if untilNs == engine.Never {
		return engine.Never
	}
	return untilNs - nowNs
}

// clockDifference bounds the difference between the ends of one item in two groups. The clocks of the groups differ,
// and so do the times at which they adopt the item.
const clockDifference = 10 * time.Second

// together reports whether an item ends at about the same time in two groups.
func together(a, b int64) bool {
	return (a == engine.Never) == (b == engine.Never) && max(a-b, b-a) <= int64(clockDifference)
}

// sameOverride reports whether an override of this group has the pattern and the limits of want, and about its end.
func sameOverride(want, have *engine.Override, left, nowNs int64) bool {
	return want.Pattern == have.Pattern && bytes.Equal(encoded(want.Limits), encoded(have.Limits)) &&
		together(left, leftNs(have.UntilNs, nowNs))
}

func encoded(limits []engine.PolicyLimit) []byte { return (&engine.Policy{Limits: limits}).Append(nil) }

func change(name string, c engine.PolicyChange) engine.Op {
	return engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &c}
}

// set returns the change that gives a policy the terms of p.
func set(p *engine.Policy, reset uint64) engine.Op {
	terms := &engine.Policy{
		Limits: p.Limits, Shadow: p.Shadow, Disabled: p.Disabled, RetryNs: p.RetryNs, Reserved: p.Reserved,
		Owner: p.Owner, Layout: p.Layout, ReportNs: p.ReportNs, Record: p.Record,
	}
	op := change(p.Name, engine.PolicyChange{Do: engine.PolicySet, Terms: terms, Own: true})
	op.WaitNs = int64(reset)
	return op
}

func override(name string, do engine.PolicyDo, o engine.Override, leftNs int64, reset uint64) engine.Op {
	o.UntilNs = engine.Never
	op := change(name, engine.PolicyChange{Do: do, Terms: &engine.Policy{Overrides: []engine.Override{o}}})
	op.TTLNs, op.WaitNs = leftNs, int64(reset)
	return op
}
