package engine

import "github.com/weir-project/weir/engine/hashslot"

// SlotOf returns the hash slot of a limiter. The limiters of a policy for a key are in the slot of the key.
func SlotOf(name []byte) uint16 { return hashslot.Of(routingKey(name)) }

// Slotless reports whether the operation concerns every Raft group: it changes a policy or a block everywhere.
// OpUnblock is such an operation, because the key may have a block everywhere.
func (op *Op) Slotless() bool {
	return op.Code == OpPolicy || op.Code == OpBlockEverywhere || op.Code == OpUnblock && !op.High ||
		op.Code == OpFollow
}

// Within reports whether a Raft group that owns these slots can carry out the operation: it owns the slots of all keys
// and of the hold.
func (op *Op) Within(slots hashslot.Range) bool {
	if op.Slotless() {
		return true
	}
	if !slots.Has(SlotOf(op.Key)) || op.Code == OpReserve && !slots.Has(SlotOf(op.ID)) {
		return false
	}
	for i := range op.Also {
		if !slots.Has(SlotOf(op.Also[i].Key)) {
			return false
		}
	}
	return true
}
