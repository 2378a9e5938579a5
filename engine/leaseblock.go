package engine

// leaseBlock is a slab slot with some of a key's leases: next(4) end(2), two bytes
// unused, and leases, each expires(8) units(8) idLen(1) id.
type leaseBlock []byte

type lease struct {
	expiresNs int64 // Never: held until released
	units     int64
	id        []byte
}

const (
	leaseBlockHead = 8
	leaseHead      = 17
)

func (b leaseBlock) next() ref      { return le.Uint32(b) }
func (b leaseBlock) end() int       { return int(le.Uint16(b[4:])) }
func (b leaseBlock) setNext(r ref)  { le.PutUint32(b, r) }
func (b leaseBlock) setEnd(end int) { le.PutUint16(b[4:], uint16(end)) }

func (b leaseBlock) lease(i int) (l lease, next int) {
	next = i + leaseHead + int(b[i+16])
	return lease{
		expiresNs: int64(le.Uint64(b[i:])), units: int64(le.Uint64(b[i+8:])), id: b[i+leaseHead : next],
	}, next
}

// add puts in a lease for which there is room.
func (b leaseBlock) add(x lease) {
	i := b.end()
	le.PutUint64(b[i:], uint64(x.expiresNs))
	le.PutUint64(b[i+8:], uint64(x.units))
	b[i+16] = uint8(len(x.id))
	b.setEnd(i + leaseHead + copy(b[i+leaseHead:], x.id))
}

// remove takes out the lease at i and returns its units.
func (b leaseBlock) remove(i int) (units int64) {
	x, next := b.lease(i)
	units = x.units
	b.setEnd(i + copy(b[i:], b[next:b.end()]))
	return units
}
