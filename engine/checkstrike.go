package engine

// extends reports whether the part's limit counts checks that its penalty denies.
func (x *part) extends() bool { return x.strikes() && x.op.Limit.Strikes&Extend != 0 }

// extend counts a check in the limits that deny it for a penalty and make it longer for that.
// It reports whether there was one.
func (k *checker) extend(op *Op) (changed bool) {
	if !k.strikes || op.Cost == 0 {
		return false
	}
	memory := k.parts[0].s.t.evictions()
	for i := range k.parts {
		x := &k.parts[i]
		if x.fits || !x.extends() {
			continue
		}
		if memory != x.s.t.evictions() {
			if x.reopen(); !x.c.Live { // given up meanwhile: the check is denied for what it was
				continue
			}
		}
		x.op.Dry, x.op.Cost = op.Dry, op.Cost
		changed = x.take() || changed
		x.op.Cost = 0 // as ask leaves it
	}
	if memory != k.parts[0].s.t.evictions() { // a limiter that was found may be gone
		k.reopen()
	}
	return changed
}

// lockedOut returns the pairs of which this check's strikes began the last penalty, as bits.
// Shadows lock nobody out.
func (k *checker) lockedOut() (pairs uint16) {
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.strikes && !g.policy.Shadow; j++ {
			if x := &k.parts[j]; x.strikes() && x.d.Locked != 0 {
				pairs |= 1 << x.pair
			}
		}
	}
	return pairs
}
