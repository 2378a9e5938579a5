package leases

import "github.com/weir-project/weir/engine/internal/arena"

// block is a slab slot with some of a key's leases: next(4) end(2), two bytes
// unused, and leases, each expires(8) units(8) idLen(1) id.
type block []byte

// Lease is units that a holder has until a time.
type Lease struct {
	ExpiresNs int64 // Never: held until released
	Units     int64
	ID        []byte
}

const (
	blockHead = 8
	leaseHead = 17
)

func (b block) next() arena.Ref     { return le.Uint32(b) }
func (b block) end() int            { return int(le.Uint16(b[4:])) }
func (b block) setNext(r arena.Ref) { le.PutUint32(b, r) }
func (b block) setEnd(end int)      { le.PutUint16(b[4:], uint16(end)) }

func (b block) lease(i int) (l Lease, next int) {
	next = i + leaseHead + int(b[i+16])
	return Lease{
		ExpiresNs: int64(le.Uint64(b[i:])), Units: int64(le.Uint64(b[i+8:])), ID: b[i+leaseHead : next],
	}, next
}

// add appends a lease. The caller has checked that it fits.
func (b block) add(x Lease) {
	i := b.end()
	le.PutUint64(b[i:], uint64(x.ExpiresNs))
	le.PutUint64(b[i+8:], uint64(x.Units))
	b[i+16] = uint8(len(x.ID))
	b.setEnd(i + leaseHead + copy(b[i+leaseHead:], x.ID))
}

// remove removes the lease at i and returns its units.
func (b block) remove(i int) (units int64) {
	x, next := b.lease(i)
	units = x.Units
	b.setEnd(i + copy(b[i:], b[next:b.end()]))
	return units
}
