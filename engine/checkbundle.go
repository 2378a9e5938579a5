package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// The limiters of a simple policy for one key are usually in one entry, a bundle (see package store). A check then
// finds them together, and changes them together.

// bundleOf returns the bundle of a simple policy for a key with hash h, or 0. It returns 0 as well while limiters have
// allocations, because opening such a limiter may remove the bundle. It sets the name of the first part.
func (k *checker) bundleOf(h uint64, p *Policy, key []byte) arena.Ref {
	first := &k.parts[0]
	if p.bundleBytes == 0 || first.s.HasAllocations() {
		return 0
	}
	first.setKey(p, key)
	return first.s.FindBundle(limiterHash(h, p.hash, 0), first.op.Key)
}

// previewBundle previews all limits of a policy. It returns false unless the bundle has the limiters of all of them,
// under the limits that are in force.
func (k *checker) previewBundle(h uint64, op *Op, bundle arena.Ref) bool {
	g, found := &k.groups[0], 0
	g.fits = true
	for m := range k.parts[0].s.Members(bundle) {
		if m.Number() >= len(k.parts) || !k.parts[m.Number()].previewMember(h, g.policy, op, bundle, m) {
			return false
		}
		g.fits = g.fits && k.parts[m.Number()].fits
		found++
	}
	return found == len(k.parts)
}

// previewMember previews one limit, whose limiter is a member of a bundle. It returns false if the limiter has another
// limit. It does not set the name of the limiter.
func (x *part) previewMember(h uint64, p *Policy, op *Op, bundle arena.Ref, m store.Entry) bool {
	if !x.s.Limits.At(m.Limit()).Is(&x.op.Limit) {
		return false
	}
	x.setUp(op)
	x.c = store.Cell{Hash: limiterHash(h, p.hash, m.Number()), Reserve: p.bundleBytes}
	x.s.SetMember(&x.c, bundle, m)
	x.moves = x.s.Moves
	x.fits = x.preview(op.Cost)
	return true
}

// takeBundle answers a check whose limits previewBundle has previewed. It writes the new states of all limiters as one
// change. The limits are in force already. So each state has the length that the limiter has, and the bundle becomes
// idle no earlier than before: this needs no memory and leaves the bundle where it is in the wheel.
func (k *checker) takeBundle(op *Op, d *Decision) (changed bool) {
	g := &k.groups[0]
	if !g.fits {
		for i := range k.parts {
			k.parts[i].setKey(g.policy, op.Key)
		}
		return k.deny(op, d)
	}
	first := &k.parts[0]
	if op.Cost > 0 && !op.Dry {
		for i := range k.parts {
			k.parts[i].outcome.write(k.parts[i].c.Entry)
		}
		first.s.Changed(first.c.Ref)
		changed = true
	}
	first.c.Key = first.op.Key
	k.admit(first.s, op, op.Cost, d)
	return changed
}
