package engine

import (
	"encoding/binary"
	"errors"

	"github.com/weir-project/weir/engine/internal/leases"
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
func (s *shard) encode(b *batch, e entry) {
	start := len(b.buf)
	b.buf = append(append(b.buf, storageKind(e)), e.key()...)
	value := len(b.buf)
	b.buf = append(b.buf, storedKind(e))
	if id := e.limit(); id != 0 {
		b.buf = s.appendLimit(b.buf, e)
	}
	b.buf = s.appendState(b.buf, e)
	s.keepLog(e)
	b.spans = append(b.spans, span{start, value, len(b.buf)})
}

// appendLimit appends the limit of an entry; that of claims does not follow from their kind.
func (s *shard) appendLimit(b []byte, e entry) []byte {
	l := s.limits.at(e.limit())
	if e.kind() == kindClaims {
		b = append(b, byte(l.Algorithm))
	}
	return l.Append(b)
}

func (s *shard) appendState(b []byte, e entry) []byte {
	st := e.state()
	switch e.kind() {
	case uint8(SlidingLog):
		log := unitlog.Read(st)
		return log.AppendStored(b, &s.slab)
	case uint8(Strike):
		b = binary.AppendVarint(b, strikeBlockedNs(st))
		log := unitlog.Read(st)
		return log.AppendStored(b, &s.slab)
	case uint8(Concurrency), kindClaims:
		set := leases.Read(st)
		return set.AppendStored(b, &s.slab)
	case kindHold:
		x := readHold(st)
		return append(b, st[:x.len()]...)
	case kindBlock:
		untilNs, reason := readBlock(st)
		if isEverywhere(st) {
			untilNs = ^untilNs // below zero, which versions refuse that do not know it
		}
		return append(binary.AppendVarint(b, untilNs), reason...)
	case uint8(Scripted):
		return script.AppendStored(b, st, &s.slab)
	case uint8(TokenBucket), uint8(LeakyBucket):
		var all [longBucketLen]byte
		writeWide(all[:], bucketOf(e))
		return append(b, all[:]...)
	}
	return append(b, st[:stateLens[e.kind()]]...)
}
