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
	// reclaimSteps bounds the pages that one call of Settle frees, and so its time to some milliseconds.
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
	// memory above it is a reserve for nodes whose tables are larger than the leader's.
	Full = Level{31, 32}
)

func (l Level) of(bound int64) int64 { return bound / l.den * l.num }

// Table is the table of a group.
type Table interface {
	// MemoryBytes returns the bytes that the table takes.
	MemoryBytes() int64
	// CompactAbove sets the sizes above which the table frees pages; see engine.Table.
	CompactAbove(high, urgent int64)
	// Compact makes at most a number of steps to free pages, while the table is above its size.
	Compact(steps int)
}

// Budget is the memory bound of a host.
type Budget struct {
	bound int64
	equal int64 // the number of equal parts; 0: the parts follow use

	mu     sync.Mutex
	shares []*Share
	read   time.Time // when the sizes were read
	total  int64     // bytes of all tables
	sorted []int64   // the size of each table, the least first
}

// New returns a budget of some bytes for a number of groups. Unless the parts follow use, they are equal.
func New(bound int64, groups int, followsUse bool) *Budget {
	b := &Budget{bound: bound}
	if groups == 1 || !followsUse {
		b.equal = int64(groups)
	}
	return b
}

// Share is the part of one group.
type Share struct {
	budget  *Budget
	table   func() Table
	giveWay func()
	size    int64 // guarded by budget.mu
}

// Join adds a group whose table may change. giveWay is called when the table exceeds its part of High. It must not
// block. Leave removes the group.
func (b *Budget) Join(table func() Table, giveWay func()) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{budget: b, table: table, giveWay: giveWay}
	b.shares, b.read = append(b.shares, s), time.Time{}
	return s
}

// Leave frees the group's part for the others.
func (s *Share) Leave() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares = slices.DeleteFunc(b.shares, func(other *Share) bool { return other == s })
	b.read, s.size = time.Time{}, 0
}

// Over returns the bytes by which a group of the given size exceeds its part of a level. A group with a result of 0 or
// less is within its part.
func (s *Share) Over(size int64, at Level) int64 {
	b := s.budget
	if b.equal > 0 {
		return size - at.of(b.bound)/b.equal
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew()
	return b.over(s, size, at)
}

// HostOver returns the bytes by which all groups together would exceed a level if this group took some bytes more.
// With equal parts it returns 0, because Over decides alone.
func (s *Share) HostOver(more int64, at Level) int64 {
	b := s.budget
	if b.equal > 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew()
	return b.total - s.size + s.table().MemoryBytes() + more - at.of(b.bound)
}

// over is Over for parts that follow use. The caller holds mu.
func (b *Budget) over(s *Share, size int64, at Level) int64 {
	allowed := at.of(b.bound)
	if over := size + b.total - s.size - allowed; over <= 0 {
		return over
	}
	return size - b.fair(s, allowed)
}

// fair returns the size x at which all tables fit into the allowed bytes, if each of the others is cut to x. The caller
// holds mu.
func (b *Budget) fair(s *Share, allowed int64) int64 {
	left, tables, own := allowed, max(int64(len(b.sorted)), 1), s.size
	for _, size := range b.sorted {
		if size == own {
			own = -1 // the group's own table, or one of the same size
			continue
		}
		if size > left/tables {
			break
		}
		left -= size
		tables--
	}
	return left / tables
}

// renew reads the sizes of the tables, unless they were read a moment ago. It reports whether it has read them. The
// caller holds mu.
func (b *Budget) renew() bool {
	now := time.Now()
	if now.Sub(b.read) < renewAfter {
		return false
	}
	b.read, b.total, b.sorted = now, 0, b.sorted[:0]
	for _, s := range b.shares {
		s.size = s.table().MemoryBytes()
		b.total += s.size
		b.sorted = append(b.sorted, s.size)
	}
	slices.Sort(b.sorted)
	return true
}

// Grown is called after the group's table may have grown. It makes groups give way if the host has exceeded High.
func (s *Share) Grown() {
	if s.budget.equal == 0 {
		for _, large := range s.budget.exceeding() {
			large.giveWay()
		}
	}
}

// exceeding returns the groups that exceed their parts of High, unless it was looked a moment ago. Their tables free
// pages from now on.
func (b *Budget) exceeding() (large []*Share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.renew() || b.total <= High.of(b.bound) {
		return nil
	}
	for _, s := range b.shares {
		if over := b.over(s, s.size, High); over > 0 {
			s.table().CompactAbove(s.size-over, s.size-b.over(s, s.size, Full))
			large = append(large, s)
		}
	}
	return large
}

// Settle lets the table free some pages if it exceeds its part of High. A table within its part frees no pages.
func (s *Share) Settle() {
	if s.budget.equal > 0 {
		return // the table frees pages by its own bound
	}
	table := s.table()
	size := table.MemoryBytes()
	over := s.Over(size, High)
	if over <= 0 {
		table.CompactAbove(math.MaxInt64, math.MaxInt64)
		return
	}
	table.CompactAbove(size-over, size-s.Over(size, Full))
	table.Compact(reclaimSteps)
}
