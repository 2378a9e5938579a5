package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// cursorBits is the size of a scan cursor: the leading bits of the hash of the key
// to go on with. JavaScript's numbers hold it.
const cursorBits = 48

// Scan calls visit with keys that are not idle, from cursor 0 on, for at least
// count keys if there are as many, and returns the cursor to go on with; 0 when
// the table is through. A key present from first to last call is visited at least
// once. key is only valid during the call, which must not use the table. A cursor
// is a place among the hashes, so it stays good while the table grows; it means
// nothing to another table.
func (t *Table) Scan(at Stamp, cursor uint64, count int, visit func(key []byte, a Algorithm)) uint64 {
	full := cursor << (64 - cursorBits)
	for {
		full = t.lookSegment(at, full, func(s *shard, g *store.Segment) { count -= s.visitSegment(g, visit) })
		if full == 0 || count <= 0 {
			return full >> (64 - cursorBits)
		}
	}
}

// visitSegment visits the keys of a segment and returns how many they were.
func (s *shard) visitSegment(g *store.Segment, visit func(key []byte, a Algorithm)) (n int) {
	g.Each(func(r arena.Ref) {
		e, live := s.View(r)
		a := Algorithm(e.Kind())
		if e.Kind() >= store.KindToken || !live || a == NoAlgorithm && s.liveLimiter(e.Key()) {
			return
		}
		n++
		visit(e.Key(), a)
	})
	return n
}

func (s *shard) liveLimiter(key []byte) bool {
	c := store.Cell{Hash: s.t.hashKey(key), Key: key}
	s.Open(&c)
	s.BringUp(&c)
	return c.Live
}

// RandomKey returns a copy of some key that is not idle, or nil. pick is a random
// number.
func (t *Table) RandomKey(at Stamp, pick uint64) (key []byte) {
	seen := uint64(0)
	visit := func(k []byte, _ Algorithm) {
		// Reservoir sampling over the segments looked at.
		if seen++; pick%seen == 0 {
			key = append(key[:0], k...)
		}
		pick = pick*6364136223846793005 + 1442695040888963407
	}
	cursor := t.Scan(at, pick>>(64-cursorBits), 1, visit)
	if key == nil && cursor == 0 {
		t.Scan(at, 0, 1, visit)
	}
	return key
}
