package engine

import (
	"cmp"
	"slices"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
)

// What holds may give back to a limiter are its claims: a set of leases, in an entry
// beside the limiter's, with the limiter's name and limit. Claims are of one limiter as
// it is: when it has become idle, was forgotten or has got another limit there is nothing
// to give back to any more, and they are void.
//
// A claim that ends by itself gives back what was held as of its end, whenever that is
// noticed: no decision on the limiter comes between. So answers do not depend on when.

// claim is what one hold may give back to one limiter.
type claim struct {
	endsNs int64
	units  int64
	mark   arith.Uint128 // where in the limiter the units are; see markOf
	id     []byte
	at     leases.Place
}

// markLen is the length of the mark, which stands before the id of the lease.
const markLen = 16

// held reports whether units of an algorithm can be held.
func held(a Algorithm) bool { return a >= TokenBucket && a <= SlidingCounter }

func claimOf(at leases.Place, x leases.Lease) claim {
	return claim{x.ExpiresNs, x.Units, readWide(x.ID), x.ID[markLen:], at}
}

// openClaims finds the claims of a limiter; ref 0 when it has none.
func (s *shard) openClaims(c *cell) (k cell) {
	if s.counts.entries[kindClaims] > 0 {
		k = cell{hash: c.hash, key: c.key, ns: claims}
		s.open(&k)
	}
	return k
}

// void reports whether claims are not of the limiter as it is now.
func void(c, k *cell) bool { return !c.live || c.e.limit() != k.e.limit() }

// claimsIn lists a set. The list is good until the next one, or a change of the set.
func (s *shard) claimsIn(set *leases.Set) []claim {
	s.listed = s.listed[:0]
	for at, x := range set.All(&s.slab) {
		s.listed = append(s.listed, claimOf(at, x))
	}
	return s.listed
}

// bringUp gives back to a limiter just opened what holds that have ended held of it.
func (s *shard) bringUp(c *cell) {
	if s.counts.entries[kindClaims] > 0 {
		s.bringUpClaimed(c)
	}
}

func (s *shard) bringUpClaimed(c *cell) {
	k := s.openClaims(c)
	if k.r == 0 {
		return
	}
	set := leases.Read(k.e.state())
	switch {
	case void(c, &k):
		if !s.looking {
			s.drop(&k)
		}
	case s.nowNs < set.SoonestNs:
	case s.looking:
		s.lend(c)
		s.end(c.e, s.claimsIn(&set))
		c.live = !s.idle(c.e)
	default:
		s.move(&set, s.end(c.e, s.claimsIn(&set)))
		set.Sweep(&s.slab, s.nowNs)
		s.keepClaims(&k, &set)
		s.settled(c)
	}
}

// end gives the claims that have ended back to a limiter, in the order of their ends,
// and returns the others.
func (s *shard) end(e entry, list []claim) (rest []claim) {
	slices.SortFunc(list, func(a, b claim) int { return cmp.Compare(a.endsNs, b.endsNs) })
	for len(list) > 0 && list[0].endsNs <= s.nowNs {
		s.giveClaim(e, &list[0], list[0].units, list[0].endsNs, list[1:])
		list = list[1:]
	}
	return list
}

// move writes the marks of claims to where they stand.
func (s *shard) move(set *leases.Set, list []claim) {
	for i := range list {
		writeWide(set.IDAt(&s.slab, list[i].at), list[i].mark)
	}
}

// keepClaims stores a set that has become smaller; an empty one is no entry.
func (s *shard) keepClaims(k *cell, set *leases.Set) {
	set.Write(k.e.state())
	if set.Count == 0 {
		s.drop(k)
		return
	}
	k.relink = true
	s.touched(k)
}

// addClaim notes that units just taken from a limiter are held. Without room for it they
// stay taken, whatever becomes of the hold.
func (s *shard) addClaim(c *cell, id []byte, units, endsNs int64) {
	if !c.live {
		return
	}
	k, limit, set := cell{hash: c.hash, key: c.key, ns: claims}, *s.limits.at(c.e.limit()), leases.Set{}
	if s.open(&k); k.r != 0 {
		set = leases.Read(k.e.state())
	}
	x := leases.Lease{ExpiresNs: endsNs, Units: units, ID: append(s.claimName[:markLen], id...)}
	writeWide(x.ID, s.markOf(c.e))
	if !s.makeRoom(set.Growth(&s.slab, x.ID), c.r) || !s.ensure(&k, kindClaims, leases.StateLen) {
		return
	}
	if k.e.limit() == 0 {
		s.setLimit(k.e, &limit)
	}
	set.Add(&s.slab, x)
	set.Write(k.e.state())
	k.relink = true
	s.touched(&k)
}

// settleClaim takes a hold's claim out of a limiter and gives units of it back.
func (s *shard) settleClaim(c *cell, id []byte, units int64) {
	k := s.openClaims(c)
	if k.r == 0 || !c.live {
		return
	}
	set := leases.Read(k.e.state())
	list := s.claimsIn(&set)
	i := slices.IndexFunc(list, func(x claim) bool { return string(x.id) == string(id) })
	if i < 0 {
		return
	}
	x := list[i]
	others := slices.Delete(list, i, i+1)
	s.giveClaim(c.e, &x, min(units, x.units), s.nowNs, others)
	s.move(&set, others)
	set.Remove(&s.slab, x.at)
	s.keepClaims(&k, &set)
	s.settled(c)
}

// dropClaims voids the claims of a limiter that is being dropped.
func (s *shard) dropClaims(c *cell) {
	if k := s.openClaims(c); k.r != 0 {
		s.drop(&k)
	}
}

// endClaims gives back the claims of an entry that have ended.
func (s *shard) endClaims(r arena.Ref) {
	key := append([]byte(nil), entry(s.slab.At(r)).key()...)
	c := cell{hash: s.t.hashKey(key), key: key}
	s.open(&c)
	s.bringUp(&c)
}
