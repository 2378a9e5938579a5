package store

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// The stored form of an entry that is no bundle (see encodeBundle for those). The key is a class byte and the entry's
// key; the value is the kind, the limit and the state, integers as varints.
//
// If a log only gained units since it was stored, its next value has only the new records. The
// flag StoredMore in the kind says that they follow the records of the previous value.
//
//	value  = kind limit state
//	limit  = mode(and strikes << 4) units perNs max windowNs steps(len, bytes)
//
// Blocks, remembered answers, counters, scripted entries and holds have no limit. The limit of
// allocations begins with its algorithm.

// ErrStored is returned by Load for bytes that Drain did not write.
var ErrStored = errors.New("not a stored entry")

// encode adds an entry to a batch.
func (s *Store) encode(b *Batch, e Entry) {
	start := len(b.buf)
	b.buf = append(append(b.buf, storageKind(e)), e.Key()...)
	value := len(b.buf)
	b.buf = append(b.buf, storedKind(e))
	if id := e.Limit(); id != 0 {
		b.buf = appendLimit(b.buf, e.Kind(), s.Limits.At(e.Limit()))
	}
	b.buf = s.appendState(b.buf, e)
	s.keepLog(e)
	b.spans = append(b.spans, span{start, value, len(b.buf)})
}

// appendLimit appends the limit of an entry. The limit of allocations begins with its algorithm, which their
// kind does not determine.
func appendLimit(b []byte, kind uint8, l *rule.Limit) []byte {
	if kind == kindAllocations {
		b = append(b, byte(l.Algorithm))
	}
	return l.Append(b)
}

func (s *Store) appendState(b []byte, e Entry) []byte {
	st := e.State()
	switch e.Kind() {
	case uint8(rule.SlidingLog):
		log := unitlog.Read(st)
		return log.AppendStored(b, &s.Slab)
	case uint8(rule.Strike):
		b = binary.AppendVarint(b, StrikeBlockedNs(st))
		log := unitlog.Read(st)
		return log.AppendStored(b, &s.Slab)
	case uint8(rule.Concurrency), kindAllocations:
		if e.Kind() == kindAllocations && s.listOf(e) != nil {
			return appendList(b, s.listOf(e))
		}
		set := leases.Read(st)
		return set.AppendStored(b, &s.Slab)
	case KindHold:
		x := ReadHold(st)
		return append(b, st[:x.Len()]...)
	case KindToken:
		if _, asked := ReadToken(st); asked == (Asked{}) {
			return append(b, st[:answerLen]...)
		}
		return append(b, st[:tokenLen(st)]...)
	case KindBlock:
		return appendBlocks(b, st)
	case uint8(rule.Scripted):
		return script.AppendStored(b, st, &s.Slab)
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		var all [LongBucketLen]byte
		writeWide(all[:], BucketOf(e))
		return append(b, all[:]...)
	}
	return append(b, st[:StateLens[e.Kind()]]...)
}

// A log in steady use has many units and gains a few between two Drains. A Drain then hands out
// only the new units. It hands out the whole log if the log lost units for another reason than
// their age, if its limit changed, or if Renew marked it.

// StoredMore is a flag of the stored kind. The value of such an entry appends to the value before it.
const StoredMore = 0x80

// HasLog reports whether the state of a kind of entry is a log.
func HasLog(kind uint8) bool { return kind == uint8(rule.SlidingLog) || kind == uint8(rule.Strike) }

// storedKind returns the first byte of an entry's stored value.
func storedKind(e Entry) uint8 {
	if HasLog(e.Kind()) {
		if log := unitlog.Read(e.State()); log.StoresMore() {
			return e.Kind() | StoredMore
		}
	}
	return e.Kind()
}

// keepLog records that Drain has returned all units of a log.
func (s *Store) keepLog(e Entry) {
	if HasLog(e.Kind()) {
		log := unitlog.Read(e.State())
		log.KeepAll(&s.Slab)
		log.Write(e.State())
	}
}

// UnkeepLog makes the next Drain hand out a whole log.
func UnkeepLog(e Entry) {
	if HasLog(e.Kind()) {
		log := unitlog.Read(e.State())
		log.ForgetKept()
		log.Write(e.State())
	}
}

// Unkeep makes the next Drain hand out a whole log, or all blocks of a list.
func (s *Store) Unkeep(r arena.Ref) {
	e := Entry(s.Slab.At(r))
	if UnkeepLog(e); e.Kind() == kindAllocations && s.listOf(e) != nil {
		s.listOf(e).MarkAll()
	}
}

// Unload removes an entry, if there is one, without recording the removal.
func (s *Store) Unload(c *Cell) {
	if c.Ref != 0 {
		if c.Space == Allocations && s.listOf(c.Entry) != nil {
			s.listOf(c.Entry).Unstore()
		}
		c.Entry.unset(flagStored)
		s.remove(c)
	}
}

// KeyOfToken returns the key of the operation to which a token's name belongs.
func KeyOfToken(name []byte) ([]byte, bool) {
	if len(name) < 2 {
		return nil, false
	}
	n := int(name[0]) | int(name[1])<<8
	if n == 0 || n > len(name)-2 {
		return nil, false
	}
	return name[2 : 2+n], true
}

// Extends reports whether a stored value, without its kind, belongs to the list that an entry has already.
func (s *Store) Extends(c *Cell, value []byte) bool {
	if c.Ref == 0 || c.Space != Allocations || s.listOf(c.Entry) == nil {
		return false
	}
	d := codec.Decoder{B: value}
	rule.ReadLimit(&d, rule.Algorithm(d.Byte()))
	return len(d.B) > 1 && d.B[0] == 0
}

// Load creates the entry of a cell that has none, or appends to the log or the list of its entry.
func (s *Store) Load(c *Cell, kind uint8, value []byte) (bool, error) {
	d, limit := codec.Decoder{B: value}, &rule.Limit{}
	if SpaceOf(kind) == Limiters && kind != uint8(rule.Counter) && kind != uint8(rule.Scripted) {
		limit = s.readLimit(&d, rule.Algorithm(kind))
	}
	if kind == kindAllocations {
		limit = s.readLimit(&d, rule.Algorithm(d.Byte()))
	}
	if d.Bad || kind == kindAllocations && !held(limit.Algorithm) {
		return false, ErrStored
	}
	return s.load(c, kind, limit, &d)
}

// readLimit is rule.ReadLimit. Most entries have the limit of the entry before, so it keeps the last limit and its
// stored form. The result is valid until the next call.
func (s *Store) readLimit(d *codec.Decoder, a rule.Algorithm) *rule.Limit {
	last := &s.lastLimit
	if last.limit.Algorithm == a && len(last.stored) > 0 && bytes.HasPrefix(d.B, last.stored) {
		d.B = d.B[len(last.stored):]
		return &last.limit
	}
	from := d.B
	last.limit = rule.ReadLimit(d, a)
	if last.stored = last.stored[:0]; !d.Bad {
		last.stored = append(last.stored, from[:len(from)-len(d.B)]...)
	}
	return &last.limit
}

// load is Load for a decoded limit. d has the state.
func (s *Store) load(c *Cell, kind uint8, limit *rule.Limit, d *codec.Decoder) (bool, error) {
	stateLen := StateLens[kind]
	switch kind {
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		stateLen = BucketLen(limit)
	case KindBlock:
		own, everywhere, ok := ReadStoredBlocks(d.B)
		if !ok {
			return false, ErrStored
		}
		stateLen = BlocksLen(own, everywhere)
	case KindHold:
		if stateLen = len(d.B); !validHold(d.B) || len(c.Key) > rule.MaxIDLen {
			return false, ErrStored
		}
	case KindToken:
		if stateLen = max(stateLen, len(d.B)); !validToken(d.B) {
			return false, ErrStored
		}
	}
	switch {
	case c.Ref == 0:
		s.create(c, kind, stateLen)
		if limit.Algorithm != rule.NoAlgorithm {
			s.SetLimit(c.Entry, limit)
		}
	case kind == kindAllocations:
		s.SetLimit(c.Entry, limit)
	case *s.Limits.At(c.Entry.Limit()) != *limit:
		return false, ErrStored
	}
	if !c.fresh { // the log of an entry goes on, or a bundle gains a limiter
		s.Wheel.unlink(&s.Slab, c.Ref)
	}
	s.loadState(c.Entry, d)
	s.Wheel.link(&s.Slab, c.Ref, s.IdleAtNs(s.Slab.At(c.Ref)))
	if d.Bad || len(d.B) > 0 {
		s.remove(c)
		return false, ErrStored
	}
	// A limiter of a policy may lag behind a policy that is not loaded yet.
	if s.idle(c.Entry) && !rule.Reserved(c.Key) {
		s.remove(c)
		return false, nil
	}
	if s.changes.on {
		c.Entry.set(flagStored)
	}
	return true, nil
}

func (s *Store) loadState(e Entry, d *codec.Decoder) {
	st := e.State()
	switch e.Kind() {
	case uint8(rule.SlidingLog):
		loadLog(s, e, d)
	case uint8(rule.Strike):
		blockedNs := d.Within(0, arith.Never)
		loadLog(s, e, d)
		le.PutUint64(st[unitlog.StateLen:], uint64(blockedNs))
	case uint8(rule.Concurrency):
		var set leases.Set
		set.Load(&s.Slab, d, 0, rule.MaxHolderLen, 1)
		set.Write(st)
	case kindAllocations:
		if len(d.B) > 1 && d.B[0] == 0 {
			d.Byte()
			s.loadList(e, d)
			return
		}
		var set leases.Set
		set.Load(&s.Slab, d, markLen+1, markLen+rule.MaxIDLen, -rule.MaxUnits)
		d.Bad = d.Bad || set.Count == 0
		set.Write(st)
	case KindHold, KindToken:
		copy(st, d.Bytes(int64(len(d.B))))
	case KindBlock:
		if own, everywhere := readStoredBlocks(d); !d.Bad {
			WriteBlocks(st, own, everywhere)
			s.BlockChanged(e, true)
		}
	case uint8(rule.Scripted):
		script.Load(st, d, &s.Slab)
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		if b := d.Bytes(LongBucketLen); !d.Bad {
			at := readWide(b)
			if d.Bad = at.Hi>>32 != 0 && !e.has(flagLong); !d.Bad {
				SetBucket(e, at)
			}
		}
	default:
		copy(st, d.Bytes(int64(StateLens[e.Kind()])))
	}
}

// loadLog appends to a log, and drops the units that had left the window at the newest unit. A policy that changes
// later does not bring them back.
func loadLog(s *Store, e Entry, d *codec.Decoder) {
	log := unitlog.Read(e.State())
	if log.Load(&s.Slab, d); log.Units > 0 {
		log.DropUntil(&s.Slab, log.LastNs-s.Limits.At(e.Limit()).WindowNs)
	}
	log.Write(e.State())
}
