package budget

import (
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// renewAfter is how old the known sizes of the tables may be. A flood of new keys takes some hundred KiB in this
	// time.
	renewAfter = 10 * time.Millisecond
	// reclaimSteps bounds the steps to free pages that one call of FreePages makes, and so its time to some
	// milliseconds.
	reclaimSteps = 128
)

// Level is a fraction of the bound at which the groups react.
type Level struct{ num, den int64 }

// The levels.
var (
	// Soft is the level above which a leader adds evictions to its entries, as in package engine.
	Soft = Level{7, 8}
	// High is the level up to which entries in flight may take memory. A table frees pages above it.
	High = Level{15, 16}
	// Full is the level above which a leader denies operations that take memory, once nothing is left to evict. The
	// memory above it is a reserve for entries in flight of other groups, and for nodes whose tables are larger than
	// the leader's.
	Full = Level{31, 32}
)

func (l Level) of(bound int64) int64 { return bound / l.den * l.num }

// Table is the table of a group.
type Table interface {
	// MemoryBytes returns the bytes that the table takes.
	MemoryBytes() int64
	// CompactAbove sets the sizes above which the table frees pages; see engine.Table.CompactAbove.
	CompactAbove(high, urgent int64)
	// Compact makes at most a number of steps to free pages, while the table is above its size.
	Compact(steps int)
}

// Budget is the memory bound of a host. Each group has a reserved part of it, together half of Soft. The rest is the
// pool, which the groups share by use.
type Budget struct {
	bound, groups, reserved int64
	equal                   bool // the parts are equal, and nothing is shared

	mu     sync.Mutex
	shares []*Share
	read   time.Time // when the sizes were read
	looked time.Time // when groups were last told to evict
	total  int64     // what all tables take of the pool
	sorted []int64   // what each of them takes, the least first
}

// New returns a budget of some bytes, 0 for no bound, for a number of groups. Unless the parts follow use, they are
// equal.
func New(bound int64, groups int, followsUse bool) *Budget {
	b := &Budget{bound: bound, groups: int64(groups), equal: groups == 1 || bound == 0 || !followsUse}
	b.reserved = Soft.of(bound) / 2 / b.groups
	return b
}

// Share is the part of one group.
type Share struct {
	budget *Budget
	table  func() Table
	evict  func()
	takes  int64 // of the pool; guarded by budget.mu
}

// Join adds a group whose table may change. evict is called when the table exceeds its part of High. It must not
// block. Leave removes the group.
func (b *Budget) Join(table func() Table, evict func()) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{budget: b, table: table, evict: evict}
	b.shares, b.read = append(b.shares, s), time.Time{}
	return s
}

// Leave frees the group's part for the others.
func (s *Share) Leave() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares = slices.DeleteFunc(b.shares, func(other *Share) bool { return other == s })
	b.read, s.takes = time.Time{}, 0
}

// Over returns the bytes by which a group of the given size exceeds its part of a level. A group with a result of 0 or
// less is within its part.
func (s *Share) Over(size int64, at Level) int64 {
	b := s.budget
	if b.equal {
		return size - at.of(b.bound)/b.groups
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew()
	return b.over(s, size, at)
}

// PoolExcess returns by how many bytes the pool would exceed a level if this group had the given size and the others
// kept theirs. It returns at most what this group takes of the pool. With equal parts there is no pool, and it
// returns 0.
func (s *Share) PoolExcess(size int64, at Level) int64 {
	b := s.budget
	takes := size - b.reserved
	if b.equal || takes <= 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew()
	excess := func() int64 { return min(max(b.total-s.takes+takes-b.pool(at), 0), takes) }
	if excess() > 0 {
		b.read = time.Time{} // the group will evict keys, so it must know what others have evicted meanwhile
		b.renew()
	}
	return excess()
}

// pool returns the bytes of the pool at a level.
func (b *Budget) pool(at Level) int64 { return at.of(b.bound) - b.groups*b.reserved }

// over is Over for parts that follow use. The caller holds mu.
func (b *Budget) over(s *Share, size int64, at Level) int64 {
	takes := size - b.reserved
	if over := b.total - s.takes + takes - b.pool(at); takes <= 0 || over <= 0 {
		return min(takes, over)
	}
	return takes - b.fair(b.pool(at), s.takes)
}

// fair returns the bytes x at which all tables fit into the pool, if each is cut to x. A table that takes the given
// bytes now counts as if it took x; -1 stands for no table. The caller holds mu.
func (b *Budget) fair(pool, own int64) int64 {
	left, tables := pool, max(int64(len(b.sorted)), 1)
	for _, takes := range b.sorted {
		if takes == own {
			own = -1 // the table itself, or another that takes as much
			continue
		}
		if takes > left/tables {
			break
		}
		left -= takes
		tables--
	}
	if tables == 0 {
		return b.sorted[len(b.sorted)-1] // all fit
	}
	return left / tables
}

// renew reads the sizes of the tables, unless they were read a moment ago. The caller holds mu.
func (b *Budget) renew() {
	now := time.Now()
	if now.Sub(b.read) < renewAfter {
		return
	}
	b.read, b.total, b.sorted = now, 0, b.sorted[:0]
	for _, s := range b.shares {
		s.takes = max(s.table().MemoryBytes()-b.reserved, 0)
		b.total += s.takes
		b.sorted = append(b.sorted, s.takes)
	}
	slices.Sort(b.sorted)
}

// Grown is called after the group's table may have grown. It makes the largest groups evict keys if the tables
// exceed High.
func (s *Share) Grown() {
	if s.budget.equal {
		return
	}
	for _, large := range s.budget.exceeding() {
		large.evict()
	}
}

// exceeding returns the groups that exceed their parts of High. It looks once in renewAfter. Their tables free pages
// from now on.
func (b *Budget) exceeding() (large []*Share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.looked) < renewAfter {
		return nil
	}
	b.looked = now
	if b.renew(); b.total <= b.pool(High) {
		return nil
	}
	high, full := b.fair(b.pool(High), -1), b.fair(b.pool(Full), -1)
	for _, s := range b.shares {
		if s.takes > high {
			s.table().CompactAbove(b.reserved+high, b.reserved+max(high, full))
			large = append(large, s)
		}
	}
	return large
}

// FreePages lets the table free some pages if it exceeds its part of High, or if it uses the pool and the pool is
// exhausted. Else it frees no pages.
func (s *Share) FreePages() {
	b := s.budget
	if b.equal {
		return // the table frees pages by its own bound
	}
	table := s.table()
	size := table.MemoryBytes()
	over := s.Over(size, High)
	switch {
	case over > 0:
		table.CompactAbove(size-over, size-s.Over(size, Full))
	case s.PoolExcess(size, Full) > 0:
		table.CompactAbove(b.reserved, math.MaxInt64)
	default:
		table.CompactAbove(math.MaxInt64, math.MaxInt64)
		return
	}
	table.Compact(reclaimSteps)
}
