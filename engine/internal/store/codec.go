package store

import (
	"encoding/binary"
	"errors"

	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// The stored form of an entry. The key is a class byte and the entry's key; the
// value is the kind, the limit and the state, integers as varints.
//
// What a log gained is stored alone: with storedMore in the kind the state holds only the
// records that come behind those of the value before.
//
//	value  = kind limit state
//	limit  = mode(and strikes << 4) units perNs max windowNs steps(len, bytes)   (not for block, token, counter, scripted, hold; claims: algorithm first)

// ErrStored is returned by Load for what Drain did not write.
var ErrStored = errors.New("not a stored entry")

// encode adds an entry to a batch.
func (s *Store) encode(b *Batch, e Entry) {
	start := len(b.buf)
	b.buf = append(append(b.buf, storageKind(e)), e.Key()...)
	value := len(b.buf)
	b.buf = append(b.buf, storedKind(e))
	if id := e.Limit(); id != 0 {
		b.buf = s.appendLimit(b.buf, e)
	}
	b.buf = s.appendState(b.buf, e)
	s.keepLog(e)
	b.spans = append(b.spans, span{start, value, len(b.buf)})
}

// appendLimit appends the limit of an entry; that of claims does not follow from their kind.
func (s *Store) appendLimit(b []byte, e Entry) []byte {
	l := s.Limits.At(e.Limit())
	if e.Kind() == kindAllocations {
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
		set := leases.Read(st)
		return set.AppendStored(b, &s.Slab)
	case KindHold:
		x := ReadHold(st)
		return append(b, st[:x.Len()]...)
	case KindBlock:
		untilNs, reason := ReadBlock(st)
		if IsEverywhere(st) {
			untilNs = ^untilNs // below zero, which versions refuse that do not know it
		}
		return append(binary.AppendVarint(b, untilNs), reason...)
	case uint8(rule.Scripted):
		return script.AppendStored(b, st, &s.Slab)
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		var all [LongBucketLen]byte
		writeWide(all[:], BucketOf(e))
		return append(b, all[:]...)
	}
	return append(b, st[:StateLens[e.Kind()]]...)
}
