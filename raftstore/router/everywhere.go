package router

import (
	"errors"
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
)

// everywhere reports whether an operation concerns every group: it changes a shared item, or lifts a block, which may
// be a block everywhere. A block of one key concerns the group of the key alone.
func everywhere(op *engine.Op) bool { return shared(op) || op.Code == engine.OpUnblock }

// shared reports whether an operation changes a shared item: a policy or a block everywhere.
func shared(op *engine.Op) bool {
	return op.Code == engine.OpPolicy || op.Code == engine.OpBlockEverywhere
}

// decideEverywhere decides operations that concern every group. All of them change shared items, or all lift blocks.
func (r *Router) decideEverywhere(ops []engine.Op, out []engine.Decision) {
	if shared(&ops[0]) {
		failIf(r.changeBound(ops, out, false), out)
		return
	}
	r.unblock(ops, out)
}

// changeBound is changeShared for operations whose IDs the groups of their keys do not know yet. An ID belongs to its
// request under the key, also if another request with it is about the key alone. So it is bound in the group of the key
// first. If that fails, the change is not made. If the first group refuses the change, the ID is free again.
func (r *Router) changeBound(ops []engine.Op, out []engine.Decision, atomic bool) (err error) {
	var binds, made []engine.Op
	var bindAt, madeAt, boundAt []int
	for i := range ops {
		if op := &ops[i]; op.Asks != (engine.Fingerprint{}) && r.groupOf(op.Key) != 0 {
			binds = append(binds, engine.Op{Code: engine.OpBind, Key: op.Key, ID: op.ID, Asks: op.Asks})
			bindAt = append(bindAt, i)
		}
	}
	if len(binds) == 0 {
		return r.changeShared(ops, out, atomic)
	}
	answers := make([]engine.Decision, len(binds))
	failIf(r.decideRun(binds, answers), answers)
	for i := range ops {
		if k := len(bindAt) - len(answers); len(answers) > 0 && bindAt[k] == i {
			out[i], answers = answers[0], answers[1:]
			switch outcome := limiter.OutcomeOfStatus(out[i].Status); {
			case out[i].Status == engine.OK:
				boundAt = append(boundAt, i)
			case outcome == limiter.ErrOldMember: // the ID is bound in the first group alone
			case outcome == limiter.ErrUnknownOutcome: // of the binding
				out[i].Status = limiter.ErrTryAgain.Status()
				continue
			default:
				continue
			}
		}
		made, madeAt = append(made, ops[i]), append(madeAt, i)
	}
	scatterTo(out, madeAt, func(part []engine.Decision) { err = r.changeShared(made, part, atomic) })
	if err == nil {
		r.release(ops, out, boundAt)
	}
	return err
}

// release makes the IDs free of those of some operations that the first group has refused.
func (r *Router) release(ops []engine.Op, out []engine.Decision, at []int) {
	var refused []engine.Op
	for _, i := range at {
		if s := out[i].Status; s != engine.OK && limiter.OutcomeOfStatus(s) == 0 {
			refused = append(refused, engine.Op{Code: engine.OpForget, Key: ops[i].Key, ID: ops[i].ID, Cost: 1})
		}
	}
	if len(refused) > 0 {
		_ = r.decideRun(refused, make([]engine.Decision, len(refused))) // else they are bound until their lifetime ends
	}
}

// changeShared carries out changes of shared items in the first group, whose answers count, and then brings all other
// groups to the version of these changes.
func (r *Router) changeShared(ops []engine.Op, out []engine.Decision, atomic bool) error {
	first, err := r.group(0)
	if err != nil {
		return err
	}
	if err := beginOrder(first); err != nil && !errors.Is(err, limiter.ErrOldMember) {
		return err
	}
	for i := range ops {
		ops[i].High = ops[i].High || ops[i].Code == engine.OpBlockEverywhere
	}
	decide := first.Decide
	if atomic {
		decide = first.DecideAtomic
	}
	if err := decide(ops, out); err != nil {
		return err
	}
	r.bringAll(ops, out)
	return nil
}

// beginOrder makes the first group count the changes of shared items, unless it does.
func beginOrder(first Group) error {
	if first.SharedVersion() > 0 {
		return nil
	}
	return renumber(first, 1)
}

// renumber gives the shared items of the first group a later version.
func renumber(first Group, version uint64) error {
	op := engine.Op{Code: engine.OpFollow, Key: []byte("shared"), Partial: true, Cost: int64(version)}
	return first.Decide([]engine.Op{op}, make([]engine.Decision, 1))
}

// bringAll brings all other groups to the version of changes that the first group has made. It replaces the answers of
// these changes if a group does not have them yet.
func (r *Router) bringAll(ops []engine.Op, out []engine.Decision) {
	version, made := int64(0), 0
	for i := range ops {
		if out[i].Status == engine.OK {
			version, made = max(version, out[i].Limit), made+1
		}
	}
	if made == 0 {
		return
	}
	behind := 0
	if version == 0 {
		behind = r.tellOld(ops, out)
	} else {
		behind = r.bringTo(uint64(version))
	}
	if behind == 0 {
		r.noteAdopted(uint64(version))
		return
	}
	total := int64(len(r.all()))
	for i := range ops {
		if out[i].Status == engine.OK {
			out[i] = engine.Decision{
				Status: limiter.ErrSomeGroups.Status(), Allowed: total - int64(behind), Limit: total,
			}
		}
	}
}

// noteAdopted records a version that all groups have.
func (r *Router) noteAdopted(version uint64) {
	for known := r.adopted.Load(); known < version && !r.adopted.CompareAndSwap(known, version); {
		known = r.adopted.Load()
	}
}

// bringTo brings all other groups to a version, and returns how many of them do not have it.
func (r *Router) bringTo(version uint64) (behind int) {
	lacks := func(m replica) bool { return m.live == nil || m.live.SharedVersion() < version } // or it is away
	if r.faults.Has(faults.FollowLater) || !slices.ContainsFunc(r.all(), lacks) {
		return 0
	}
	want, err := r.sharedAt(version)
	if err != nil {
		r.log.Debug("the first group's shared items could not be read", "error", err)
		return len(r.all()) - 1
	}
	for i, err := range r.forAll(func(i int, g reachable) error {
		if i == 0 {
			return nil
		}
		return r.bringAnywhere(g, want)
	}) {
		if err != nil {
			behind++
			r.log.Warn("a group did not adopt a change of policies or of blocks EVERYWHERE in time, and will later",
				"group", i, "error", err)
		}
	}
	return behind
}

// tellOld carries out changes that the first group has made in all other groups, while a member of the cluster is too
// old for the order. It returns how many groups did not make them.
func (r *Router) tellOld(ops []engine.Op, out []engine.Decision) (behind int) {
	var made []engine.Op
	for i := range ops {
		if out[i].Status != engine.OK {
			continue
		}
		op := ops[i]
		if op.ID = nil; op.Policy != nil {
			change := *op.Policy
			change.If, change.Version = false, 0 // the first group has compared the versions
			op.Policy = &change
		}
		made = append(made, op)
	}
	for _, err := range r.forAll(func(i int, g reachable) error {
		if i == 0 {
			return nil
		}
		answers := make([]engine.Decision, len(made))
		if err := g.Decide(slices.Clone(made), answers); err != nil {
			return err
		}
		return refusal(answers)
	}) {
		if err != nil {
			behind++
		}
	}
	return behind
}

// unblock lifts blocks: the block of each key in the key's group, and its block everywhere in the first group and then
// in all others. The group of a key is asked first. The first group is asked only if that group did its part, and a
// group may have a block everywhere of the key, or the first group may remember an answer for the ID. A request that
// fails in between is answered as unknown.
func (r *Router) unblock(ops []engine.Op, out []engine.Decision) {
	err := r.reach(0, reachable.ReadIndex)
	own, at := []engine.Op{}, []int{}
	for i := range ops {
		if r.groupOf(ops[i].Key) == 0 {
			continue
		}
		if err != nil {
			out[i] = engine.Decision{Status: outcomeOf(err).Status()}
			continue
		}
		op := ops[i]
		op.High = true // its own block alone
		own, at = append(own, op), append(at, i)
	}
	scatterTo(out, at, func(part []engine.Decision) { failIf(r.decideRun(own, part), part) })
	all, everywhereAt := []engine.Op{}, []int{}
	mayHave := r.mayHave()
	for i := range ops {
		blocked := err == nil && mayHave(ops[i].Key)
		if r.groupOf(ops[i].Key) == 0 || out[i].Status == engine.OK && (blocked || len(ops[i].ID) > 0) {
			all, everywhereAt = append(all, ops[i]), append(everywhereAt, i)
		}
	}
	lifted := make([]engine.Decision, len(out))
	scatterTo(lifted, everywhereAt, func(part []engine.Decision) { failIf(r.changeShared(all, part, false), part) })
	for _, i := range everywhereAt {
		join(&out[i], &lifted[i], r.groupOf(ops[i].Key) == 0)
	}
}

// mayHave returns a function that reports whether a group may have a block everywhere of a key: the first group has it,
// or has lost it since a version that another group has. One copy of the first group's items tells both, because a
// removal may come in between.
func (r *Router) mayHave() func(key []byte) bool {
	first, err := r.group(0)
	if err != nil {
		return func([]byte) bool { return true }
	}
	items := first.Shared()
	oldest := items.Version
	for _, m := range r.all() {
		switch {
		case m.live != nil:
			oldest = min(oldest, m.live.SharedVersion())
		case m.away != nil: // other nodes bring a group that has ended here
			oldest = min(oldest, r.adopted.Load())
		}
	}
	return func(key []byte) bool {
		_, there := items.Block(string(key))
		return there || oldest < items.Version && items.LostSince(oldest, string(key)) ||
			items.Version == 0 && r.anyHas(key)
	}
}

// anyHas reports whether a replica on this node has a block everywhere of a key.
func (r *Router) anyHas(key []byte) bool {
	for _, g := range r.live() {
		if g.BlocksEverywhere().Has(key) {
			return true
		}
	}
	return false
}

// scatterTo calls decide with answers for the operations at these places, and copies the answers there.
func scatterTo(out []engine.Decision, at []int, decide func([]engine.Decision)) {
	if len(at) == 0 {
		return
	}
	part := make([]engine.Decision, len(at))
	decide(part)
	for k, i := range at {
		out[i] = part[k]
	}
}

// join joins the answers to OpUnblock of the key's group, which did its part, and of the first group. only tells that
// they are one group.
func join(own, all *engine.Decision, only bool) {
	switch outcome := limiter.OutcomeOfStatus(all.Status); {
	case only || outcome == limiter.ErrSomeGroups:
		*own = *all
	case all.Status == engine.OK:
		own.Allowed = max(own.Allowed, all.Allowed)
	case own.Allowed == 0 && outcome != limiter.ErrUnknownOutcome:
		*own = *all // nothing was changed
	default:
		*own = engine.Decision{Status: limiter.ErrUnknownOutcome.Status()}
	}
}

// refusal returns an error if a group refused an operation.
func refusal(out []engine.Decision) error {
	for i := range out {
		if out[i].Status != engine.OK {
			return errRefused(out[i].Status)
		}
	}
	return nil
}
