package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
)

// Unpacked is a backup of which every byte was verified. It is valid until the build function of RestoreTo returns.
type Unpacked struct {
	// EndHolds removes holds whose id and keys would be in different groups. Without it, Entries returns ErrSplitHold.
	EndHolds bool
	// EndedHolds is the number of holds that Entries has removed.
	EndedHolds int

	options StoreOptions
	parts   []unpackedPart // by group; a backup of one group has one part
	loaded  *engine.Table  // the table of the part that Entries read last
	of      int            // the number of that part
	common  []engine.Change
	// everywhere has the values of the blocks in common, by storage key.
	everywhere map[string][]byte
	known      bool // common has been read
}

// unpackedPart is the image of one group.
type unpackedPart struct {
	Contents
	slots hashslot.Range
	dir   string
}

// unpack verifies every byte of a backup and passes it to build.
func unpack(o StoreOptions, from io.Reader, build func(into string, b *Unpacked) error) (c Contents, err error) {
	base := o.FS.PathJoin(o.Dir, restoreName)
	u := &Unpacked{options: o, of: -1}
	start, version, err := readStart(from)
	switch {
	case err != nil:
		return c, err
	case ofGroups(version):
		err = u.receiveGroups(start, from)
	default:
		err = u.receiveOne(start, from)
	}
	if err != nil {
		return c, err
	}
	return u.Within(hashslot.All), backupError(build(o.FS.PathJoin(base, "ready"), u))
}

// receiveOne receives a backup of one group.
func (b *Unpacked) receiveOne(start []byte, from io.Reader) error {
	c, err := readRest(start, from)
	if err != nil {
		return err
	}
	return b.receive(unpackedPart{Contents: c, slots: hashslot.All}, "image", from)
}

// receiveGroups receives a backup of several groups. An error names the group whose image is missing or damaged.
func (b *Unpacked) receiveGroups(start []byte, from io.Reader) error {
	m, err := readManifest(start, from)
	if err != nil {
		return err
	}
	for i, g := range m.groups {
		if err := b.receiveGroup(&m, i, g, from); err != nil {
			return fmt.Errorf("image of group %d of %d: %w", i, len(m.groups), err)
		}
	}
	if n, err := io.ReadFull(from, make([]byte, 1)); n > 0 {
		return fmt.Errorf("%w (data follows the image of the last group)", ErrNoBackup)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (b *Unpacked) receiveGroup(m *manifest, i int, g manifestGroup, from io.Reader) error {
	if err := m.readPartStart(from, i); err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	whole := io.TeeReader(io.LimitReader(from, g.bytes), sum)
	c, err := readContents(whole)
	if err != nil {
		return err
	}
	if c != g.Contents {
		return fmt.Errorf("%w (it ends at entry %d, and the manifest names entry %d)", ErrNoBackup, c.Index, g.Index)
	}
	if err := b.receive(unpackedPart{c, g.slots, ""}, fmt.Sprintf("image%04d", i), whole); err != nil {
		return err
	}
	var end [partSum]byte
	if err := readPart(from, end[:], "its checksum is missing"); err != nil {
		return err
	}
	if sum.Sum32() != binary.LittleEndian.Uint32(end[:]) {
		return fmt.Errorf("%w (its checksum is wrong)", ErrNoBackup)
	}
	return nil
}

// receive stores the image of a group in a directory of its own.
func (b *Unpacked) receive(p unpackedPart, name string, from io.Reader) (err error) {
	p.dir = b.options.FS.PathJoin(b.options.Dir, restoreName, name)
	images, err := b.open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, images.Close()) }()
	in, err := images.Receive(p.Index, p.Term, nil)
	if err != nil {
		return err
	}
	if _, err = io.Copy(in, from); err == nil {
		_, err = in.Close()
	}
	if err != nil {
		return errors.Join(backupError(err), in.Cancel())
	}
	b.parts = append(b.parts, p)
	return nil
}

func (b *Unpacked) open(p unpackedPart) (*Images, error) {
	o := b.options
	o.Dir = p.dir
	return OpenImages(o)
}

// backupError converts an error about the image in a backup to ErrNoBackup.
func backupError(err error) error {
	if errors.Is(err, ErrStream) || errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w (%v)", ErrNoBackup, err)
	}
	return err
}

// Groups returns the number of groups of the backup.
func (b *Unpacked) Groups() int { return len(b.parts) }

// Within describes what the backup has of a range of slots. Groups have clocks of their own. If several groups own the
// slots, the result has the latest clock, which is not before the time of any entry.
func (b *Unpacked) Within(slots hashslot.Range) (c Contents) {
	for i, p := range b.overlapping(slots) {
		if i == 0 {
			c = p.Contents
			continue
		}
		if p.At.LimiterNs > c.At.LimiterNs {
			c.At = p.At
		}
		c.IDLifetimeNs = max(c.IDLifetimeNs, p.IDLifetimeNs)
	}
	return c
}

// overlapping returns the parts that own any of the slots.
func (b *Unpacked) overlapping(slots hashslot.Range) (some []unpackedPart) {
	for _, p := range b.parts {
		if p.slots.First <= slots.Last && slots.First <= p.slots.Last {
			some = append(some, p)
		}
	}
	return some
}

// Entries passes the entries of a group that owns these slots to write, in pieces and in no order. They are the
// entries of the slots, the policies and the blocks everywhere. Entries first loads them into a table, so that it
// passes only entries that a start can load. It omits entries that are idle at the time of the backup.
func (b *Unpacked) Entries(slots hashslot.Range, write func([]engine.Change) error) error {
	if err := b.readCommon(slots); err != nil {
		return err
	}
	if err := inBatches(b.common, write); err != nil {
		return err
	}
	for i, p := range b.parts {
		if p.slots.First > slots.Last || slots.First > p.slots.Last {
			continue
		}
		if err := b.load(i); err != nil {
			return err
		}
		b.loaded.Renew(0, math.MaxInt)
		if err := b.loaded.Drain(chunkEntries, func(chunk []engine.Change) error {
			mine, err := b.mine(chunk, slots)
			if err != nil {
				return err
			}
			return inBatches(mine, write)
		}); err != nil {
			return err
		}
	}
	return nil
}

// keepsAll reports whether one group of the backup becomes one group.
func (b *Unpacked) keepsAll(slots hashslot.Range) bool {
	return len(b.parts) == 1 && slots == hashslot.All
}

// mine returns the changes of a chunk that belong to a group with these slots. The chunk is overwritten.
func (b *Unpacked) mine(chunk []engine.Change, slots hashslot.Range) (mine []engine.Change, err error) {
	if b.keepsAll(slots) {
		return chunk, nil
	}
	mine = chunk[:0]
	for _, c := range chunk {
		if len(c.Value) == 0 {
			continue // the restored group has no such entry
		}
		at, err := engine.PlacementOf(c)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w (entry %.64q: %v)", ErrDamaged, c.Key, err)
		case at.Event:
			if b.parts[b.of].slots != slots { // cursors mean nothing in another group
				continue
			}
		case at.Policy || at.Order || !slots.Has(at.Slot):
			continue
		case at.Block:
			if own := engine.MergeBlocks(c.Value, nil); own != nil {
				c.Value = engine.MergeBlocks(own, b.everywhere[string(c.Key)])
				mine = append(mine, c)
			}
			continue
		case engine.SplitHold(c, slots):
			if !b.EndHolds {
				return nil, fmt.Errorf("%w (hold %.64q)", ErrSplitHold, c.Key[1:])
			}
			b.EndedHolds++
			continue
		}
		mine = append(mine, c)
	}
	return mine, nil
}

// load loads the table of a part, unless it is loaded already.
func (b *Unpacked) load(part int) error {
	if b.of == part {
		return nil
	}
	p := b.parts[part]
	b.loaded, b.of = nil, -1
	table := engine.NewTable(engine.Options{IDLifetimeNs: p.IDLifetimeNs, TrackChanges: true,
		EventsBytes: math.MaxInt64}) // the restored group drops what is beyond its own bound
	if err := b.loadTo(p, table); err != nil {
		return err
	}
	b.loaded, b.of = table, part
	return nil
}

func (b *Unpacked) loadTo(p unpackedPart, to Loader) (err error) {
	images, err := b.open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, images.Close()) }()
	return images.Load(imageID(p.Index, p.Term), func([]byte) (engine.Stamp, error) {
		return engine.Stamp{NowNs: p.At.LimiterNs, WallOffsetNs: p.At.OffsetNs}, nil
	}, to)
}

// readCommon reads the policies and the blocks everywhere from the first group, which decides about them. It does
// nothing if a backup of one group is restored as one group.
func (b *Unpacked) readCommon(slots hashslot.Range) error {
	if b.known || b.keepsAll(slots) {
		return nil
	}
	b.known, b.everywhere = true, map[string][]byte{}
	found := &commonEntries{values: b.everywhere}
	if err := b.loadTo(b.parts[0], found); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(found.values)) {
		b.common = append(b.common, engine.Change{Key: []byte(key), Value: found.values[key]})
	}
	return nil
}

// commonEntries is a Loader that keeps only the policies and blocks everywhere that readCommon reads.
type commonEntries struct {
	mu     sync.Mutex
	values map[string][]byte
}

// Reserve does nothing: these entries are few.
func (e *commonEntries) Reserve(int64) {}

// Load keeps policies and blocks everywhere.
func (e *commonEntries) Load(_ engine.Stamp, changes []engine.Change) (bad int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, c := range changes {
		var at engine.Placement
		if c.Value != nil {
			if at, err = engine.PlacementOf(c); err != nil {
				return i, err
			}
		}
		switch key := string(c.Key); {
		case at.Policy:
			e.values[key] = bytes.Clone(c.Value)
		case at.BlockEverywhere:
			e.values[key] = engine.MergeBlocks(nil, c.Value)
		default:
			delete(e.values, key) // a block of the key alone replaces a block everywhere
		}
	}
	return 0, nil
}
