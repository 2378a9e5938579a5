package allocations

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
)

// TestBlockSize checks the memory that a block counts for.
func TestBlockSize(t *testing.T) {
	size := int64(unsafe.Sizeof(block{}))
	require.LessOrEqual(t, size, int64(blockBytes))
	require.Greater(t, size, int64(blockBytes*7/8))
}

// naive is a list with absolute marks.
type naive struct {
	*rand.Rand
	t     *testing.T
	l     *List
	meter *arena.Meter
	hash  func([]byte) uint64
	all   []Allocation
	store map[uint64][]byte
	next  int
	last  uint64
	most  int
}

func wide(n int64) arith.Uint128 { return arith.Uint128{Lo: uint64(n)} }

func (m *naive) mark() int64 {
	if n := len(m.all); n > 0 {
		return int64(m.all[n-1].Mark.Lo)
	}
	return 1e6
}

func (m *naive) add() {
	id := []byte(fmt.Sprint("id", m.next))
	if m.next++; m.IntN(3) == 0 && len(m.all) > 0 {
		id = slices.Clone(m.all[m.IntN(len(m.all))].ID)
	}
	m.last++
	x := Allocation{1 + m.Int64N(1000), m.Int64N(9) - 4, wide(m.mark() + m.Int64N(100)), m.last, id}
	m.l.Add(x)
	m.all = append(m.all, x)
}

func (m *naive) step() {
	n := len(m.all)
	if n == 0 || n < m.most && m.IntN(3) > 0 {
		m.add()
		return
	}
	i := m.IntN(n)
	x := &m.all[i]
	switch m.IntN(9) {
	case 0:
		x.Units = m.Int64N(9)
		m.l.SetUnits(x.Seq, x.Units)
	case 1:
		endsNs := 1 + m.Int64N(1000)
		m.l.Renew(x.ID, endsNs)
		for k := range m.all {
			if string(m.all[k].ID) == string(x.ID) {
				m.all[k].EndsNs = endsNs
			}
		}
	case 2:
		x = &m.all[n-1]
		x.Units, x.Mark = x.Units+1, x.Mark.Add(wide(3))
		m.l.Grow(x.Seq, 1, x.Mark)
	case 3:
		by := wide(m.Int64N(50))
		m.l.MoveAll(by)
		for k := range m.all {
			m.all[k].Mark = m.all[k].Mark.SubFloor(by)
		}
	case 4:
		m.save()
	default:
		gap := int64(x.Mark.Lo)
		if i > 0 {
			gap -= int64(m.all[i-1].Mark.Lo)
		}
		given := wide(m.Int64N(gap + 1))
		m.l.Remove(x.Seq, given)
		m.all = slices.Delete(m.all, i, i+1)
		for k := range m.all[i:] {
			m.all[i+k].Mark = m.all[i+k].Mark.Sub(given)
		}
	}
}

// save stores what changed, and now and then loads it into a new list, in any order.
func (m *naive) save() {
	for _, gone := range m.l.Gone() {
		delete(m.store, gone)
	}
	for n := 1 + m.IntN(5); m.l.Dirty(); {
		m.l.Drain(n, func(first uint64, value func([]byte) []byte) { m.store[first] = value(nil) })
	}
	if m.IntN(4) > 0 {
		return
	}
	again := New(m.meter, m.hash)
	firsts := []uint64{}
	for first := range m.store {
		firsts = append(firsts, first)
	}
	for i, first := range firsts {
		if i%3 == 0 {
			require.NoError(m.t, again.Load(first, m.store[firsts[0]]), "a block that is replaced")
			again.Unload(first)
		}
		require.NoError(m.t, again.Load(first, m.store[first]))
	}
	again.SetHead(m.l.Head())
	m.l.Free()
	m.l.Gone()
	m.l = again
}

func (m *naive) check() {
	soonestNs, holds := arith.Never, map[string]int{}
	for _, x := range m.all {
		soonestNs = min(soonestNs, x.EndsNs)
		holds[string(x.ID)]++
	}
	require.Equal(m.t, []int{len(m.all), len(holds)}, []int{m.l.Count(), m.l.Holds()})
	require.Equal(m.t, soonestNs, m.l.SoonestNs())
	from := m.Uint64N(m.last + 2)
	want := slices.DeleteFunc(slices.Clone(m.all), func(x Allocation) bool { return x.Seq < from })
	require.Equal(m.t, fmt.Sprint(want), fmt.Sprint(slices.Collect(m.l.From(from))))
	atNs := m.Int64N(1000)
	want = slices.DeleteFunc(slices.Clone(m.all), func(x Allocation) bool { return x.EndsNs > atNs })
	require.Equal(m.t, fmt.Sprint(want), fmt.Sprint(slices.Collect(m.l.Ended(atNs))))
	if len(m.all) == 0 {
		return
	}
	require.Equal(m.t, soonestNs, m.l.Soonest().EndsNs)
	id := m.all[m.IntN(len(m.all))].ID
	want = slices.DeleteFunc(slices.Clone(m.all), func(x Allocation) bool { return string(x.ID) != string(id) })
	slices.Reverse(want)
	require.Equal(m.t, fmt.Sprint(want), fmt.Sprint(slices.Collect(m.l.Of(id))))
	newest, n := m.l.Newest(id)
	require.Equal(m.t, fmt.Sprint(want[0], len(want)), fmt.Sprint(newest, n))
	require.LessOrEqual(m.t, m.l.live*perBlock, 4*m.l.count+4*perBlock, "sparse blocks must be repacked")
}

// TestList compares a list with a slice, in random orders of adding, changing, removing, storing and loading. Some hash
// functions make most ids collide.
func TestList(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			hashes := []uint64{1, 7, 1 << 40}[seed%3]
			m := &naive{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, meter: arena.NewMeter(), store: map[uint64][]byte{}}
			m.hash = func(id []byte) uint64 {
				h := fnv.New64a()
				_, _ = h.Write(id)
				return h.Sum64() % hashes
			}
			m.l = New(m.meter, m.hash)
			for i := range 1800 {
				if i%300 == 0 {
					m.most = []int{1000, 5, 300, 0, 40, 700}[i/300]
				}
				if m.step(); hashes > 100 || i%20 == 0 {
					m.check()
				}
				require.Equal(t, m.meter.Bytes(), m.l.Bytes())
			}
			for len(m.all) > 0 {
				m.l.Remove(m.all[0].Seq, arith.Uint128{})
				m.all = m.all[1:]
			}
			require.Zero(t, m.l.live)
			m.l.Free()
			require.Zero(t, m.meter.Bytes())
		})
	}
}

// TestLoadOfDamage checks that bytes that no list stored are refused, or are a list.
func TestLoadOfDamage(t *testing.T) {
	hash := func(id []byte) uint64 { return uint64(len(id)) }
	l := New(arena.NewMeter(), hash)
	for i := range 16 {
		l.Add(Allocation{EndsNs: 5, Units: 1, Mark: wide(int64(i)), ID: []byte("abc")})
	}
	var value []byte
	l.Drain(1, func(_ uint64, of func([]byte) []byte) { value = of(nil) })
	for i := range value {
		require.Error(t, New(arena.NewMeter(), hash).Load(1, value[:i]), "%d bytes", i)
		for bit := range 8 {
			damaged, again := slices.Clone(value), New(arena.NewMeter(), hash)
			damaged[i] ^= 1 << bit
			if again.Load(1, damaged) != nil || again.Load(3, value) != nil {
				continue
			}
			for again.Count() > 0 {
				again.Remove(again.Soonest().Seq, arith.Uint128{})
			}
		}
	}
}
