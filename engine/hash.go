package engine

import (
	"encoding/binary"
	"hash/crc64"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// StateHash is a hash of everything that decisions at or after the stamp depend on:
// policies, and limiters, blocks and remembered IDs that are not idle. Tables that carried out the
// same operations at the same stamps have the same hash, whatever their shards, their
// collecting and their being stored and loaded again; tables that differ in one entry
// differ in it, but for one chance in 2^64. The table is locked a segment at a time:
// for the hash of one state nothing may be decided meanwhile.
func (t *Table) StateHash(at Stamp) (sum uint64) {
	h := stateHasher{table: crc64.MakeTable(crc64.ECMA)}
	for full := uint64(0); ; {
		full = t.lookSegment(at, full, func(s *shard, g *segment) {
			g.each(func(r arena.Ref) {
				if e, live := s.view(r); live {
					sum += h.entry(s, e)
				}
			})
		})
		if full == 0 {
			return sum + h.policies(t.policies.Load())
		}
	}
}

// stateHasher hashes entries one by one; their sum has no order.
type stateHasher struct {
	table *crc64.Table
	buf   []byte
}

// hash is a checksum with its bits mixed (the finalizer of SplitMix64). A checksum is
// linear: without that, what one key has too much and another too little would cancel
// out in the sum more often than by chance.
func (h *stateHasher) hash(b []byte) uint64 {
	x := crc64.Checksum(b, h.table)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// entry hashes the stored form of an entry without what it has yet to forget.
func (h *stateHasher) entry(s *shard, e entry) uint64 {
	b := append(h.buf[:0], storageKind(e), byte(e.keyLen()), byte(e.keyLen()>>8))
	b = append(append(b, e.key()...), e.kind())
	if id := e.limit(); id != 0 {
		b = s.appendLimit(b, e)
	}
	switch e.kind() {
	case uint8(SlidingLog):
		b = s.appendWindow(b, e)
	case uint8(Strike):
		b = binary.AppendVarint(s.appendWindow(b, e), strikeBlockedNs(e.state()))
	case uint8(Concurrency):
		b = le.AppendUint64(b, h.leases(s, e))
	case kindClaims:
		sum, standing := h.claims(s, e)
		if !standing {
			return 0
		}
		b = le.AppendUint64(b, sum)
	default:
		b = s.appendState(b, e)
	}
	h.buf = b
	return h.hash(b)
}

// appendWindow adds the records of a log that are within its window.
func (s *shard) appendWindow(b []byte, e entry) []byte {
	log, untilNs := unitlog.Read(e.state()), s.nowNs-s.limits.at(e.limit()).WindowNs
	for r := range log.All(&s.slab) {
		if r.AtNs > untilNs {
			b = binary.AppendVarint(b, r.AtNs)
			b = binary.AppendVarint(b, r.Units)
		}
	}
	return b
}

// leases hashes the leases that have not ended. Where they stand in their blocks
// tells when others were swept, so they have no order either.
func (h *stateHasher) leases(s *shard, e entry) (sum uint64) {
	set := leases.Read(e.state())
	set.Hide(&s.slab, s.nowNs)
	var room [2*binary.MaxVarintLen64 + MaxHolderLen]byte
	for _, x := range set.All(&s.slab) {
		b := binary.AppendVarint(room[:0], x.ExpiresNs)
		b = binary.AppendVarint(b, x.Units)
		sum += h.hash(append(b, x.ID...))
	}
	return sum
}

// claims hashes the claims that have not ended, unless there is none or they are void.
func (h *stateHasher) claims(s *shard, e entry) (sum uint64, standing bool) {
	c := cell{hash: s.t.hashKey(e.key()), key: e.key()}
	s.open(&c)
	if !c.live || c.e.limit() != e.limit() {
		return 0, false
	}
	set := leases.Read(e.state())
	list := s.claimsIn(&set)
	if s.nowNs >= set.SoonestNs {
		s.lend(&c)
		list = s.end(c.e, list)
		c.live = !s.idle(c.e)
	}
	var room [2*binary.MaxVarintLen64 + markLen + MaxIDLen]byte
	for _, x := range list {
		b := binary.AppendVarint(room[:0], x.endsNs)
		b = binary.AppendVarint(b, x.units)
		b = le.AppendUint64(le.AppendUint64(b, x.mark.Hi), x.mark.Lo)
		sum += h.hash(append(b, x.id...))
	}
	return sum, c.live && len(list) > 0
}
