package engine

import (
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/engine/internal/store"
)

// Placement says which Raft groups keep a stored entry.
type Placement struct {
	// Slot is the hash slot of the key that the entry belongs to. It means nothing for a policy.
	Slot uint16
	// Policy and BlockEverywhere mark entries of which every group has a copy.
	Policy, BlockEverywhere bool
	// Block marks the blocks of a key: its own, the block everywhere, or both.
	Block bool
	// Order marks the version of the shared items, which a restored group counts anew.
	Order bool
	// Event marks a part of the log of events of one group.
	Event bool
}

// PlacementOf returns the placement of a stored entry. The entry is one that Drain handed out, and not a removal.
func PlacementOf(c Change) (p Placement, err error) {
	if len(c.Value) == 0 || !validStorageKey(c.Key) {
		return p, ErrStored
	}
	key := c.Key[1:]
	switch c.Key[0] {
	case policyClass:
		return Placement{Policy: true}, nil
	case orderClass:
		return Placement{Order: true}, nil
	case eventClass:
		return Placement{Event: true}, nil
	case store.StorageKinds[store.Tokens]:
		var ok bool
		if key, ok = store.KeyOfToken(key); !ok {
			return p, ErrStored
		}
	case store.AllocationBlocks:
		var ok bool
		if key, _, ok = store.SplitBlockKey(key); !ok {
			return p, ErrStored
		}
	case store.StorageKinds[store.Blocks]:
		_, everywhere, ok := store.ReadStoredBlocks(c.Value[1:])
		if !ok {
			return p, ErrStored
		}
		p.Block, p.BlockEverywhere = true, everywhere.UntilNs != 0
	}
	p.Slot = SlotOf(key)
	return p, nil
}

// MergeBlocks returns the stored value of the blocks of a key with the block of the key from one value and the block
// everywhere from another, without its version. It returns nil if there is neither. The values may be empty.
func MergeBlocks(ofKey, ofAll []byte) []byte {
	var own, everywhere store.Block
	if len(ofKey) > 0 {
		own, _, _ = store.ReadStoredBlocks(ofKey[1:])
	}
	if len(ofAll) > 0 {
		_, everywhere, _ = store.ReadStoredBlocks(ofAll[1:])
		everywhere.Version = 0
	}
	if own.UntilNs == 0 && everywhere.UntilNs == 0 {
		return nil
	}
	return store.AppendBlocks([]byte{store.KindBlock}, own, everywhere)
}

// SplitHold reports whether a stored entry is a hold that is not completed and has a key outside the slots of
// its group.
func SplitHold(c Change, slots hashslot.Range) bool {
	if len(c.Value) == 0 || c.Key[0] != store.StorageKinds[store.Holds] {
		return false
	}
	x := store.ReadHold(c.Value[1:])
	if x.Phase == store.HoldCompleted {
		return false
	}
	for _, p := range x.Pairs {
		if !slots.Has(SlotOf(p.Key)) {
			return true
		}
	}
	return false
}
