package store

import (
	"encoding/binary"
	"hash/crc64"

	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// Hasher hashes entries one by one. The sum of the hashes does not depend on the order of entries.
type Hasher struct {
	table *crc64.Table
	buf   []byte
}

// NewHasher returns a hasher for the entries of a table.
func NewHasher() Hasher { return Hasher{table: crc64.MakeTable(crc64.ECMA)} }

// Hash returns a checksum with its bits mixed (the finalizer of SplitMix64). A checksum is linear, so without
// mixing the differences of entries would often cancel out in a sum.
func (h *Hasher) Hash(b []byte) uint64 {
	x := crc64.Checksum(b, h.table)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Entry hashes the stored form of an entry, without its expired parts.
func (h *Hasher) Entry(s *Store, e Entry) uint64 {
	b := append(h.buf[:0], storageKind(e), byte(e.keyLen()), byte(e.keyLen()>>8))
	b = append(append(b, e.Key()...), e.Kind())
	if e.Kind() == kindAllocations {
		return h.allocations(s, e, b)
	}
	if id := e.Limit(); id != 0 {
		b = appendLimit(b, e.Kind(), s.Limits.At(id))
	}
	switch e.Kind() {
	case uint8(rule.SlidingLog):
		b = appendWindow(s, b, e)
	case uint8(rule.Strike):
		b = binary.AppendVarint(appendWindow(s, b, e), StrikeBlockedNs(e.State()))
	case uint8(rule.Concurrency):
		b = le.AppendUint64(b, h.leases(s, e))
	default:
		b = s.appendState(b, e)
	}
	h.buf = b
	return h.Hash(b)
}

// appendWindow appends the records of a log that are within its window.
func appendWindow(s *Store, b []byte, e Entry) []byte {
	log, untilNs := unitlog.Read(e.State()), s.NowNs-s.Limits.At(e.Limit()).WindowNs
	for r := range log.All(&s.Slab) {
		if r.AtNs > untilNs {
			b = binary.AppendVarint(b, r.AtNs)
			b = binary.AppendVarint(b, r.Units)
		}
	}
	return b
}

// leases hashes the leases that have not ended, independently of their order. The order of leases depends on when
// expired leases were removed.
func (h *Hasher) leases(s *Store, e Entry) (sum uint64) {
	set := leases.Read(e.State())
	set.Hide(&s.Slab, s.NowNs)
	var room [2*binary.MaxVarintLen64 + rule.MaxHolderLen]byte
	for _, x := range set.All(&s.Slab) {
		b := binary.AppendVarint(room[:0], x.ExpiresNs)
		b = binary.AppendVarint(b, x.Units)
		sum += h.Hash(append(b, x.ID...))
	}
	return sum
}

// allocations hashes the allocations that have not ended, after the bytes b. The hash is 0 if there are none or they
// are void. Their limit is that of their limiter, which may lag behind its definition.
func (h *Hasher) allocations(s *Store, e Entry, b []byte) uint64 {
	c := Cell{Hash: s.hashKey(e.Key()), Key: e.Key()}
	s.Open(&c)
	if s.catchUp(&c); StaleAllocations(&c, &Cell{Entry: e}) {
		return 0
	}
	list := s.allAllocations(e)
	if s.NowNs >= s.IdleAtNs(e) {
		s.copyForRead(&c)
		list = s.releaseEnded(c.Entry, list)
		c.Live = !s.idle(c.Entry)
	}
	if !c.Live || len(list) == 0 {
		return 0
	}
	sum := uint64(0)
	var room [2*binary.MaxVarintLen64 + markLen + rule.MaxIDLen]byte
	for _, x := range list {
		b := binary.AppendVarint(room[:0], x.endsNs)
		b = binary.AppendVarint(b, x.lease(x.units))
		b = le.AppendUint64(le.AppendUint64(b, x.mark.Hi), x.mark.Lo)
		sum += h.Hash(append(b, x.id...))
	}
	h.buf = le.AppendUint64(appendLimit(b, kindAllocations, s.Limits.At(c.Entry.Limit())), sum)
	return h.Hash(h.buf)
}
