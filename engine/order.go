package engine

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/store"
)

// Policies and blocks everywhere are shared: every Raft group of a cluster has them. The first group decides their
// changes, and counts them: its order has a version, and each shared item has the version of its last change. The other
// groups follow by OpFollow: a batch that begins with it replaces the items of one version by those of a later one, if
// the group still has the version for which the batch was made. So a group is behind the first one, or equal to it, and
// no late or repeated batch takes it back.
//
// A group begins to count with its first OpFollow, because older versions of weir do not count.
//
// The order keeps the items of policies. A block everywhere has its version in its entry, by rules older than
// RulesManyBlocks as an item of the order. In the first group, the first change by RulesManyBlocks replaces these items
// by one version for all blocks.

// order is the version of a table's shared items. Who changes it holds the locks of all shards.
type order struct {
	mu      sync.Mutex
	version uint64 // of the first group; 0: not counted yet
	steps   uint64 // batches since the table has this version
	follows bool   // this is not the first group
	items   map[string]Item
	floor   uint64 // no block has an earlier version
	blocks  int    // how many of items are blocks
	changed bool   // since the last Drain
	batch   *Op    // the OpFollow of the batch that is carried out; nil: none

	// removed are the last blocks that were removed, in the order of their versions: all since the version complete.
	// The elements of the slice do not change, so that SharedItems have it without a copy.
	removed  []removal
	complete uint64
}

type removal struct {
	key     string
	version uint64
}

// maxRemovals bounds order.removed.
const maxRemovals = 4096

// Item says which change of the first group a shared item comes from.
type Item struct {
	Version uint64 // of the last change; 0: unknown
	Reset   uint64 // of the last change that deleted the usage of a policy
	untilNs int64  // of a block, by the clock of this group
}

// SharedItems is a copy of the shared items of a table.
type SharedItems struct {
	Version, Steps uint64
	NowNs          int64 // limiter time of the copy
	Policies       *Policies
	table          *Table // for its hashes alone
	blocks         *blocksEverywhere
	order          order // without its lock
}

// SharedBlock is a block everywhere.
type SharedBlock struct {
	Key, Reason string
	UntilNs     int64
	Version     uint64 // of the last change; 0: unknown
}

// Policy returns the item of a policy.
func (s *SharedItems) Policy(name string) Item { return s.order.items[string(policyClass)+name] }

// Blocks returns the blocks that are in force.
func (s *SharedItems) Blocks() iter.Seq[SharedBlock] {
	return func(yield func(SharedBlock) bool) {
		if s.blocks == nil {
			return
		}
		for _, x := range s.blocks.names.From(0) {
			if x.untilNs > s.NowNs && !yield(s.block(x)) {
				return
			}
		}
	}
}

func (s *SharedItems) block(x *blockEverywhere) SharedBlock {
	version := max(x.version, s.order.floor)
	if s.order.blocks > 0 {
		version = max(version, s.order.items[blockItem+x.key].Version)
	}
	return SharedBlock{x.key, x.reason, x.untilNs, version}
}

// Block returns the block of a key, if one is in force.
func (s *SharedItems) Block(key string) (b SharedBlock, there bool) {
	if s.blocks == nil {
		return b, false
	}
	x := s.blocks.of(s.table, []byte(key))
	if x.end() <= s.NowNs {
		return b, false
	}
	return s.block(x), true
}

// BlocksSince returns the blocks in force that have changed since a version, and the keys of those that were removed
// since then and may have a block again, or that have ended. It returns false if that is not known.
func (s *SharedItems) BlocksSince(version uint64) (changed []SharedBlock, removed []string, ok bool) {
	if !s.knows(version) {
		return nil, nil, false
	}
	if s.blocks != nil {
		for _, x := range s.blocks.versions.From(byVersion(version + 1)) {
			if x.untilNs > s.NowNs {
				changed = append(changed, s.block(x))
			} else {
				removed = append(removed, x.key)
			}
		}
	}
	for _, r := range s.removedSince(version) {
		removed = append(removed, r.key)
	}
	return changed, removed, true
}

// LostSince reports whether the block of a key was removed since a version, or has changed since then and ended. It
// returns true if that is not known.
func (s *SharedItems) LostSince(version uint64, key string) bool {
	if !s.knows(version) {
		return true
	}
	if s.blocks != nil {
		x := s.blocks.of(s.table, []byte(key))
		if x != nil && x.version > version && x.untilNs <= s.NowNs {
			return true
		}
	}
	return slices.ContainsFunc(s.removedSince(version), func(r removal) bool { return r.key == key })
}

// knows reports whether the changes of blocks since a version are known.
func (s *SharedItems) knows(version uint64) bool {
	o := &s.order
	return o.blocks == 0 && version > o.floor && version >= o.complete
}

// removedSince returns the known removals since a version.
func (s *SharedItems) removedSince(version uint64) []removal {
	all := s.order.removed
	i, _ := slices.BinarySearchFunc(all, version+1, func(r removal, v uint64) int { return cmp.Compare(r.version, v) })
	return all[i:]
}

// SameBlocks reports whether two copies of one table are sure to have the same blocks, but for those that have ended.
func (s *SharedItems) SameBlocks(other *SharedItems) bool {
	return s.blocks == other.blocks && s.order.floor == other.order.floor && s.order.blocks == other.order.blocks &&
		s.order.blocks == 0
}

// blockItem begins the name of an item that is a block everywhere.
const blockItem = "b"

// SharedVersion returns SharedItems.Version.
func (t *Table) SharedVersion() uint64 {
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	return t.order.version
}

// Shared returns a copy of the shared items. The stamp decides which blocks are in force.
func (t *Table) Shared(at Stamp) *SharedItems {
	t.shards[0].mu.Lock() // a change of a shared item holds the locks of all shards
	defer t.shards[0].mu.Unlock()
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	o := &t.order
	return &SharedItems{
		Version: o.version, Steps: o.steps, NowNs: at.NowNs, Policies: t.policies.Load(),
		table: t, blocks: t.everywhere.Load(),
		order: order{
			items: maps.Clone(o.items), floor: o.floor, blocks: o.blocks,
			removed: slices.Clip(o.removed), complete: o.complete,
		},
	}
}

// note records a change of an item. The caller holds mu.
func (o *order) note(name string, op *Op, there, reset bool, untilNs int64) {
	item := Item{untilNs: untilNs}
	switch {
	case o.batch != nil:
		item.Version, item.Reset = uint64(op.Cost), uint64(op.WaitNs)
	case o.version == 0:
		return
	case !o.follows:
		o.version++
		if item.Version, item.Reset = o.version, o.items[name].Reset; reset {
			item.Reset = o.version
		}
	default: // an older node changed this group alone, so the item differs from that of the first group
		there = false
	}
	o.changed = true
	if o.remove(name); there {
		o.put(name, item)
	}
}

func (o *order) put(name string, i Item) {
	if o.items == nil {
		o.items = map[string]Item{}
	}
	o.items[name] = i
	o.blocks += int(arith.OneIf(name[:1] == blockItem))
}

func (o *order) remove(name string) {
	if _, there := o.items[name]; there {
		delete(o.items, name)
		o.blocks -= int(arith.OneIf(name[:1] == blockItem))
	}
}

// policyChanged records a change of a policy, which may change nothing in a group that follows. next is nil if the
// policy is deleted. It returns the version of the order.
func (o *order) policyChanged(op *Op, changed bool, old, next *Policy) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !changed && o.batch == nil {
		return o.version
	}
	o.note(string(policyClass)+string(op.Key), op, next != nil, old == nil || op.Policy.Reset, 0)
	return o.version
}

// nextBlockVersion returns the version that the entry of a block everywhere gets by an operation, or 0 if it has none.
func (t *Table) nextBlockVersion(op *Op) uint64 {
	o := &t.order
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case t.Rules() < RulesManyBlocks, o.batch == nil && (o.version == 0 || o.follows):
		return 0
	case o.batch != nil:
		return uint64(op.Cost)
	}
	return o.version + 1
}

// blockChanged records a change of a block everywhere, and drops the items of blocks that have ended. It returns the
// version of the order.
func (t *Table) blockChanged(op *Op, changed bool, b store.Block, nowNs int64) uint64 {
	o := &t.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if !changed && o.batch == nil {
		return o.version
	}
	switch {
	case o.blocks > 0 && !o.follows && t.Rules() >= RulesManyBlocks:
		o.floor = o.version
		o.removeBlocks(func(Item) bool { return true })
	case o.blocks > 0:
		o.removeBlocks(func(i Item) bool { return i.untilNs <= nowNs })
	}
	before := o.version
	o.note(blockItem+string(op.Key), op, b.UntilNs > 0 && b.Version == 0, false, b.UntilNs)
	if b.UntilNs == 0 && o.version > before {
		if len(o.removed) == maxRemovals {
			o.complete = max(o.complete, o.removed[maxRemovals/2-1].version)
			o.removed = slices.Clone(o.removed[maxRemovals/2:])
		}
		o.removed = append(o.removed, removal{string(op.Key), o.version})
	}
	return o.version
}

// removeBlocks removes the items of some blocks.
func (o *order) removeBlocks(some func(Item) bool) {
	maps.DeleteFunc(o.items, func(name string, i Item) bool { return name[:1] == blockItem && some(i) })
	o.countBlocks()
}

func (o *order) countBlocks() {
	o.blocks = 0
	for name := range o.items {
		o.blocks += int(arith.OneIf(name[:1] == blockItem))
	}
}

// ended makes BlocksSince know no version before that of an ended block that leaves the set. A group that is behind may
// still have an earlier block of the key, which ends later.
func (o *order) ended(version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.complete = max(o.complete, version)
}

// forgetRemovals makes BlocksSince know no version before this one.
func (o *order) forgetRemovals() { o.removed, o.complete = nil, o.version }

// cleared records that all blocks are removed. A group that follows has kept its blocks everywhere.
func (o *order) cleared() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.version == 0 {
		return
	}
	if !o.follows {
		o.version++
		o.removeBlocks(func(Item) bool { return true })
		o.forgetRemovals()
	}
	o.changed = true
}

// begin begins an OpFollow and reports whether it may be carried out.
func (t *Table) begin(op *Op, nowNs int64) bool {
	o := &t.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if op.Partial {
		return !o.follows && t.renumber(uint64(op.Cost), nowNs)
	}
	if o.version > 0 && !o.follows || o.version != uint64(op.WaitNs) || o.steps != uint64(op.TTLNs) ||
		op.Cost < op.WaitNs {
		return false
	}
	o.follows, o.batch = true, op
	return true
}

// renumber gives the first group a later version, which all of its items get. The first group begins with it. It also
// needs it when its log has lost its last entries, and other groups have followed them.
func (t *Table) renumber(version uint64, nowNs int64) bool {
	o := &t.order
	if version <= o.version {
		return true
	}
	items, floor := map[string]Item{}, uint64(0)
	add := func(name string, untilNs int64) {
		items[name] = Item{version, max(o.items[name].Reset, 1), untilNs}
	}
	for name := range t.policies.Load().byName {
		add(string(policyClass)+name, 0)
	}
	if all := t.everywhere.Load(); t.Rules() >= RulesManyBlocks {
		floor = version
	} else if all != nil {
		for _, b := range all.names.From(0) {
			if b.untilNs > nowNs {
				add(blockItem+b.key, b.untilNs)
			}
		}
	}
	o.version, o.items, o.floor, o.changed = version, items, floor, true
	o.countBlocks()
	o.forgetRemovals()
	return true
}

// end ends an OpFollow. The table has the later version if every operation of the batch was carried out.
func (o *order) end(op *Op, out []Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.batch = nil
	if op.Partial {
		return
	}
	o.changed = true
	o.steps++
	for i := range out {
		if out[i].Status != OK {
			return
		}
	}
	if out[0].Allowed = 1; uint64(op.Cost) > o.version {
		o.version, o.steps = uint64(op.Cost), 0
	}
}

// The stored form of an order is version steps follows items(n, name version reset untilNs ...) floor, integers as
// varints and texts after their length. There is no floor if it is 0; older versions refuse another one.

// orderClass is the first byte of the storage key of the order, and orderKey the rest.
const (
	orderClass = 'o'
	orderKey   = "shared"
)

func (o *order) append(b []byte) []byte {
	for _, v := range []int64{int64(o.version), int64(o.steps), arith.OneIf(o.follows), int64(len(o.items))} {
		b = binary.AppendVarint(b, v)
	}
	for _, name := range slices.Sorted(maps.Keys(o.items)) {
		i := o.items[name]
		b = append(binary.AppendVarint(b, int64(len(name))), name...)
		for _, v := range []int64{int64(i.Version), int64(i.Reset), i.untilNs} {
			b = binary.AppendVarint(b, v)
		}
	}
	if o.floor > 0 {
		b = binary.AppendVarint(b, int64(o.floor))
	}
	return b
}

// load replaces the order by a stored one.
func (o *order) load(value []byte) error {
	d := codec.Decoder{B: value}
	number := func() uint64 { return uint64(d.Within(0, Never)) }
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version, o.steps, o.follows, o.items = number(), number(), d.Within(0, 1) == 1, map[string]Item{}
	for n := number(); n > 0 && !d.Bad; n-- {
		name := string(d.Bytes(d.Within(2, MaxKeyLen+1)))
		o.items[name] = Item{number(), number(), d.Within(0, Never)}
	}
	if o.floor = 0; !d.Bad && len(d.B) > 0 {
		o.floor = uint64(d.Within(1, Never))
	}
	o.countBlocks()
	o.forgetRemovals()
	if d.Bad || len(d.B) > 0 {
		return ErrStored
	}
	return nil
}

// drain adds a changed order to a batch.
func (o *order) drain(b *store.Batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed && o.version > 0 {
		b.Add(orderClass, orderKey, o.append)
	}
	o.changed = false
}

// renew makes the next Drain hand out the order.
func (o *order) renew() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = true
}

// hash hashes the order.
func (o *order) hash(h *store.Hasher) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.version == 0 {
		return 0
	}
	return h.Hash(o.append([]byte{orderClass}))
}
