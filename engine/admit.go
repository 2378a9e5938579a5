package engine

// admit fills in the part of a decision that all counting algorithms share: used
// units count against Limit.Max. It returns the units granted, and whether the
// operation is admitted (a look may be, without a grant).
func admit(op *Op, used int64, d *Decision) (grant int64, ok bool) {
	left := max(op.Limit.Max-used, 0)
	grant, d.Allowed = op.Cost, 1
	if op.forced {
		grant = max(min(grant, op.Limit.Most()-used), 0)
		return grant, true
	}
	if op.Partial {
		grant = min(op.Cost, left)
		d.Allowed = grant
	}
	ok = used+grant <= op.Limit.Max && grant >= op.want()
	if !ok {
		grant, d.Allowed = 0, 0
	}
	d.Remaining = max(left-grant, 0)
	d.Limit = op.Limit.Max
	return grant, ok
}

// canFit reports whether some wait would let the operation be admitted.
func (op *Op) canFit() bool { return op.want() <= op.Limit.Max }

// want is how many units must fit for the operation to be admitted.
func (op *Op) want() int64 {
	if op.Partial {
		return min(op.Cost, 1)
	}
	return op.Cost
}
