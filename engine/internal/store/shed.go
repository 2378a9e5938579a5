package store

import (
	"cmp"
	"slices"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// shedding evicts entries with slots of one class, until the free slots of the class would fill whole pages.
// Compaction then frees these pages. Evictions from all classes alike would leave a few free slots in each class,
// and free no page.
type shedding struct {
	candidates []candidate
	pinned     pins
	laps       int    // how often the walk for this class reached the end of the index
	found      bool   // an entry was found since the walk was last at the end
	evicted    bool   // an entry was evicted in this round over the classes
	anything   bool   // mostNs has no effect, because no entry of less worth was found
	mostNs     int64  // entries with a greater worthNs are not evicted
	at         uint64 // the hash at which the walk over the index continues
	class      uint8  // the class that is being shed
	visited    int64  // entries on the way of walks over the index
}

// pins has, for each class in which a whole walk found no entry to evict, how many rounds leave the class out. Without
// it, each round over the classes would walk over all entries for nothing, if the large entries are of great worth and
// most entries are small.
type pins [arena.NumClasses]uint8

// rest ends a round.
func (p *pins) rest() {
	for class, rounds := range p {
		p[class] = max(rounds, 1) - 1
	}
}

type candidate struct {
	r       arena.Ref
	worthNs int64
}

const (
	// shedStep is how many segments one step visits. The step evicts one in shedDen of the candidates that it
	// found there, those of least worth.
	shedStep = 64
	shedDen  = 8
	// shedReads bounds the entries that may not be evicted in one step, up to the end of a segment.
	shedReads = 2048
	// shedTries is how many victims are tried to choose a class. shedLeast is the least number of pages that
	// the class of a victim must have. Freeing one of n pages evicts an n-th of the class's entries.
	shedTries = 4
	shedLeast = 8
	// shedPages: shedGoal is one in shedPages of a class's pages.
	shedPages = compactDen
	// shedRest is how many rounds a class stays pinned.
	shedRest = 16
	// shedFewer: if nothing of little worth is left to evict, a compaction runs that frees one in shedFewer of the
	// pages that make it worthwhile otherwise.
	shedFewer = 8
	// shedBlocks bounds how many blocks of a chain are examined to find a block of the class.
	shedBlocks = 8
)

// shedSome evicts a few entries and reports whether there may be more to evict.
func (s *Store) shedSome() bool {
	d := &s.shedding
	if !s.hasEvictable() {
		return false
	}
	if !s.chooseClass() {
		return s.endRound()
	}
	s.findCandidates()
	if len(d.candidates) > 0 {
		d.found, d.evicted = true, true
		slices.SortFunc(d.candidates, byWorth)
		for _, x := range d.candidates[:(len(d.candidates)+shedDen-1)/shedDen] {
			if s.EachCell(x.r, s.GiveUp); !s.mayShed(d.class) {
				d.class, d.anything = 0, false // the next step chooses a class
				break
			}
		}
	}
	return true
}

// endRound ends a round over the classes, and reports whether another one may find more to evict. Entries of more worth
// are evicted only if the slots that are free already are not worth a compaction.
func (s *Store) endRound() (again bool) {
	d := &s.shedding
	switch {
	case d.evicted:
		d.anything = false
		d.pinned.rest()
	case !d.anything && s.planCompaction(max(1, s.worthCompaction()/shedFewer)):
		d.pinned.rest()
	default:
		d.anything, d.pinned = !d.anything, pins{}
		return d.anything
	}
	d.evicted = false
	return true
}

// byWorth orders candidates by their worth, and those of equal worth by a hash of their position. Without the
// hash, neighbours would be evicted together, and a segment could lose all its entries of little worth.
func byWorth(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.worthNs, b.worthNs), cmp.Compare(a.r*scatter, b.r*scatter))
}

const scatter = 2654435769 // the multiplier of Knuth's multiplicative hashing

// chooseClass keeps the class that is being shed until its goal is reached. Then it chooses the class of an entry
// that evict would choose, or else the class with the most pages. It returns false if no class can be shed.
func (s *Store) chooseClass() bool {
	d := &s.shedding
	if s.mayShed(d.class) {
		return true
	}
	d.laps, d.found, d.mostNs = 0, false, arith.Never // the walk continues where it is: any position is as good
	if !d.anything {
		d.mostNs = s.usualWorth()
	}
	for range shedTries {
		r := s.NearestIdle(0)
		if r == 0 {
			break
		}
		class := s.Slab.ClassAt(r)
		if s.worthNs(Entry(s.Slab.At(r))) <= d.mostNs {
			d.pinned[class] = 0 // a walk finds this entry
		}
		if s.Slab.PagesOf(class) >= shedLeast && s.mayShed(class) {
			d.class = class
			return true
		}
	}
	most := 0
	for class := range uint8(arena.NumClasses) {
		if pages := s.Slab.PagesOf(class); pages > most && s.mayShed(class) {
			d.class, most = class, pages
		}
	}
	return most > 0
}

// usualWorth returns the median worth of a sample of entries.
func (s *Store) usualWorth() int64 {
	d := &s.shedding
	d.candidates = d.candidates[:0]
	s.visitFew(func(r arena.Ref, e Entry) { d.candidates = append(d.candidates, candidate{r, s.worthNs(e)}) })
	if len(d.candidates) == 0 {
		return arith.Never
	}
	slices.SortFunc(d.candidates, byWorth)
	return d.candidates[len(d.candidates)/2].worthNs
}

// mayShed reports whether evictions from a class are wanted and possible.
func (s *Store) mayShed(class uint8) bool {
	pages := s.Slab.PagesOf(class)
	return pages > 0 && s.shedding.pinned[class] == 0 && s.Slab.Surplus(class) < s.shedGoal(pages)
}

// shedGoal returns how many pages of a class to free before the next class is chosen. It is rounded up, so the goals
// of all classes together make a compaction worthwhile. The goal of a large class does so alone, because all other
// entries may be of greater worth.
func (s *Store) shedGoal(pages int) int {
	return max((pages+shedPages-1)/shedPages, min(pages/shedLeast, s.worthCompaction()))
}

// VisitedByShedding returns how many entries the walks of shedSome have read. It measures their work.
func (s *Store) VisitedByShedding() int64 { return s.shedding.visited }

// SearchedInVain returns how many entries were read to find victims that may not be evicted.
func (s *Store) SearchedInVain() int64 { return s.inVain }

// findCandidates lists the entries of some segments that have a slot of the class that is being shed. If a whole walk
// over the index found no such entry, it pins the class.
func (s *Store) findCandidates() {
	d := &s.shedding
	d.candidates = d.candidates[:0]
	wanted := shedDen * s.Slab.Lacks(d.class, s.shedGoal(s.Slab.PagesOf(d.class)))
	chains, most := s.hasChainsToShed(), s.inVain+shedReads
	for i := 0; i < shedStep && len(d.candidates) < wanted && s.inVain < most; i++ {
		g := s.Index.SegmentOf(d.at)
		d.visited += int64(g.live)
		g.Each(func(r arena.Ref) {
			own := s.Slab.ClassAt(r) == d.class
			if !own && !chains {
				return // the common case; reading entries takes longer than everything else here
			}
			e := Entry(s.Slab.At(r))
			if !own && !s.chainHas(e, d.class) {
				return
			}
			if !s.evictable(r, e) {
				s.inVain++
				return
			}
			if worthNs := s.worthNs(e); worthNs <= d.mostNs {
				d.candidates = append(d.candidates, candidate{r, worthNs})
			}
		})
		if d.at = g.following(d.at); d.at == 0 {
			if d.laps > 0 && !d.found && len(d.candidates) == 0 {
				d.pinned[d.class] = shedRest
			}
			d.laps, d.found = d.laps+1, false
			return
		}
	}
}

// chainHas reports whether the chain of an entry has a slot of a class.
func (s *Store) chainHas(e Entry, class uint8) bool {
	if st := logState(e); st != nil {
		log := unitlog.Read(st)
		return s.Slab.ChainUses(log.First(), class, shedBlocks)
	}
	switch e.Kind() {
	case uint8(rule.Concurrency):
		set := leases.Read(e.State())
		return s.Slab.ChainUses(set.First(), class, shedBlocks)
	case uint8(rule.Scripted):
		return s.Slab.ChainUses(script.FirstBlock(e.State()), class, shedBlocks)
	}
	return false
}
