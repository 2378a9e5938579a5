package engine

// rehearse reports whether an atomic batch may be carried out. A batch with a conditional
// change of a policy is carried out whole or not at all: when one of its changes of
// policies is refused, that one is answered with why, and all others with Abandoned.
func (t *Table) rehearse(nowNs int64, ops []Op, out []Decision) bool {
	if !conditional(ops) {
		return true
	}
	set := t.policies.Load()
	for i := range ops {
		if ops[i].Code != OpPolicy {
			continue
		}
		if set = t.changed(set, nowNs, &ops[i], &out[i]); out[i].Status != OK {
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
