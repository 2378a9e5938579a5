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

// Shedding evicts entries of one class of slots until its free slots make pages that
// compaction can give back. Evictions spread over all classes would leave a few free slots in
// each, and no page.
type shedding struct {
	candidates []candidate
	pinned     [arena.NumClasses]bool // classes in which nothing was found to evict
	laps       int                    // how often the walk came to the end, for this class
	found      bool                   // something, since the walk was last at the end
	evicted    bool                   // something, since no class was pinned
	anything   bool                   // what is worth much may go: nothing else was found
	mostNs     int64                  // what is worth more stays
	at         uint64                 // the hash from which on the walk goes on
	class      uint8
}

type candidate struct {
	r       arena.Ref
	worthNs int64
}

const (
	// shedStep is how many segments one step looks at, and shedDen the part of the
	// candidates found there that it evicts: those that are worth least.
	shedStep = 64
	shedDen  = 8
	// shedTries is how often a class is looked for by its entries, and shedLeast how many
	// pages it must have: of n pages, a page costs an n-th of the entries.
	shedTries = 4
	shedLeast = 8
	// shedPages is the part of a class's pages that shedGoal asks for.
	shedPages = compactDen
	// shedBlocks bounds the blocks of a chain that are looked at for one of the class.
	shedBlocks = 8
)

// shedSome evicts a few entries and reports whether there may be more to evict.
func (s *Store) shedSome() bool {
	d := &s.shedding
	if !s.chooseClass() {
		again := d.evicted || !d.anything // what is pinned may be so no longer
		d.anything = !d.evicted && !d.anything
		d.pinned, d.evicted = [arena.NumClasses]bool{}, false
		return again
	}
	s.findCandidates()
	if len(d.candidates) > 0 {
		d.found, d.evicted = true, true
		slices.SortFunc(d.candidates, byWorth)
		for _, x := range d.candidates[:(len(d.candidates)+shedDen-1)/shedDen] {
			c := s.cellOf(x.r)
			if s.GiveUp(&c); !s.mayShed(d.class) {
				d.class, d.anything = 0, false // the next class may be another
				break
			}
		}
	}
	return true
}

// byWorth orders candidates by their worth. Those of the same worth come in an order that has
// nothing to do with their places: evict samples neighbours, which must not all be gone.
func byWorth(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.worthNs, b.worthNs), cmp.Compare(a.r*scatter, b.r*scatter))
}

const scatter = 2654435769 // of Knuth's multiplicative hashing

// chooseClass goes on with the class that is being shed. When that is done it takes the class
// of an entry that evict would choose, and failing that the one with most pages.
func (s *Store) chooseClass() bool {
	d := &s.shedding
	if s.mayShed(d.class) {
		return true
	}
	d.laps, d.found, d.mostNs = 0, false, arith.Never // and the walk goes on: no place is worse than others
	if !d.anything {
		d.mostNs = s.usualWorth()
	}
	for range shedTries {
		r := s.NearestIdle(0)
		if r == 0 {
			break
		}
		if class := s.Slab.ClassAt(r); s.Slab.PagesOf(class) >= shedLeast && s.mayShed(class) {
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

// usualWorth is the median of what a few entries are worth.
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

// mayShed reports whether evictions of a class are wanted and possible.
func (s *Store) mayShed(class uint8) bool {
	pages := s.Slab.PagesOf(class)
	return pages > 0 && !s.shedding.pinned[class] && s.Slab.Surplus(class) < shedGoal(pages)
}

// shedGoal is how many pages to free of a class before the next class. Rounded up, those of all
// classes are as many as a compaction must free to be worth it.
func shedGoal(pages int) int { return (pages + shedPages - 1) / shedPages }

// findCandidates lists the entries of some segments that have a slot of the class. A class of
// which a whole walk found none is pinned.
func (s *Store) findCandidates() {
	d := &s.shedding
	d.candidates = d.candidates[:0]
	wanted := shedDen * s.Slab.Lacks(d.class, shedGoal(s.Slab.PagesOf(d.class)))
	chains := s.hasChains()
	for i := 0; i < shedStep && len(d.candidates) < wanted; i++ {
		g := s.Index.SegmentOf(d.at)
		g.Each(func(r arena.Ref) {
			own := s.Slab.ClassAt(r) == d.class
			if !own && !chains {
				return // most entries are, and to read them takes longer than all else here
			}
			e := Entry(s.Slab.At(r))
			if !evictable(e) || !own && !s.chainHas(e, d.class) {
				return
			}
			if worthNs := s.worthNs(e); worthNs <= d.mostNs {
				d.candidates = append(d.candidates, candidate{r, worthNs})
			}
		})
		if d.at = g.following(d.at); d.at == 0 {
			d.pinned[d.class] = d.laps > 0 && !d.found && len(d.candidates) == 0
			d.laps, d.found = d.laps+1, false
			return
		}
	}
}

// chainHas reports whether the chain of an entry has a slot of a class.
func (s *Store) chainHas(e Entry, class uint8) bool {
	if st := logState(e); st != nil {
		return s.Slab.ChainUses(firstOfLog(st), class, shedBlocks)
	}
	switch e.Kind() {
	case uint8(rule.Concurrency):
		return s.Slab.ChainUses(firstOfLeases(e.State()), class, shedBlocks)
	case uint8(rule.Scripted):
		return s.Slab.ChainUses(script.FirstBlock(e.State()), class, shedBlocks)
	}
	return false
}

func firstOfLog(state []byte) arena.Ref {
	log := unitlog.Read(state)
	return log.First()
}

func firstOfLeases(state []byte) arena.Ref {
	set := leases.Read(state)
	return set.First()
}
