package router

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// everywhere reports whether an operation concerns every group. A block of one key does, because it replaces the key's
// block everywhere if there is one.
func everywhere(op *engine.Op) bool { return op.Slotless() || op.Code == engine.OpBlock && !op.Partial }

// decideEverywhere decides one operation that concerns every group.
func (r *Router) decideEverywhere(op []engine.Op, out []engine.Decision) {
	var err error
	if op[0].Code == engine.OpPolicy {
		err = r.changePolicies(op, out)
	} else {
		err = r.changeBlock(op, out)
	}
	if err != nil {
		fail(out, err)
	}
}

// changeBlock carries out a change of a block in the group of the key, whose answer counts, and then in all others.
func (r *Router) changeBlock(op []engine.Op, out []engine.Decision) error {
	home := r.groupOf(op[0].Key)
	if err := r.all()[home].Decide(op, out); err != nil || out[0].Status != engine.OK {
		return err
	}
	other := op[0]
	if other.Code == engine.OpBlock {
		other.Code, other.Text, other.TTLNs = engine.OpUnblock, nil, 0 // the key may have had a block everywhere
	}
	other.ID = nil // only the group of the key remembers the answer
	return r.others(home, []engine.Op{other}, false)
}

// changePolicies carries out changes of policies in the first group, whose answers count, and then in all others.
// Several changes are one transaction.
func (r *Router) changePolicies(ops []engine.Op, out []engine.Decision) error {
	atomic := len(ops) > 1
	decide := r.all()[0].Decide
	if atomic {
		decide = r.all()[0].DecideAtomic
	}
	if err := decide(ops, out); err != nil {
		return err
	}
	var accepted []engine.Op
	for i := range ops {
		if out[i].Status != engine.OK {
			continue
		}
		op, change := ops[i], *ops[i].Policy
		change.If, change.Version = false, 0 // the first group has compared the versions
		op.Policy, op.ID = &change, nil
		accepted = append(accepted, op)
	}
	if len(accepted) == 0 {
		return nil
	}
	return r.others(0, accepted, atomic)
}

// others carries out operations in all groups except one. It returns ErrUnknownOutcome if any of them did not.
func (r *Router) others(except int, ops []engine.Op, atomic bool) error {
	errs := r.forAll(func(i int, g Group) error {
		if i == except {
			return nil
		}
		out := make([]engine.Decision, len(ops))
		decide := g.Decide
		if atomic {
			decide = g.DecideAtomic
		}
		if err := decide(ops, out); err != nil {
			return err
		}
		return refusal(ops, out)
	})
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	// The errors of the groups are not wrapped, because they may say that nothing was changed.
	return fmt.Errorf("%w: %d of %d groups have no change: %v", limiter.ErrUnknownOutcome, len(failed), len(r.all()),
		errors.Join(failed...))
}

// refusal returns an error if a group refused an operation, which another group has carried out.
func refusal(ops []engine.Op, out []engine.Decision) error {
	for i := range out {
		if out[i].Status != engine.OK {
			return fmt.Errorf("the change of %q was refused with status %d", ops[i].Key, out[i].Status)
		}
	}
	return nil
}
