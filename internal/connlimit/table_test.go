package connlimit

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// port is a table that numbers its connections in the order of admission.
type port struct {
	t       require.TestingT
	table   *Table
	evicted atomic.Int64
	slots   []*Slot
	cut     []int
}

func newPort(t require.TestingT, most, perSource int) *port {
	p := &port{t: t}
	p.table = New(most, perSource, &p.evicted)
	return p
}

func from(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }

func (p *port) try(source int) (number int, err error) {
	number = len(p.slots)
	s, err := p.table.Admit(from(source), func() { p.cut = append(p.cut, number) })
	if err == nil {
		p.slots = append(p.slots, s)
	}
	return number, err
}

// admit lets a number of connections of a source in, and returns their slots.
func (p *port) admit(source, n int) []*Slot {
	for range n {
		_, err := p.try(source)
		require.NoError(p.t, err)
	}
	return p.slots[len(p.slots)-n:]
}

// requireCut checks which connections were evicted since the last call.
func (p *port) requireCut(numbers ...int) {
	require.Equal(p.t, numbers, p.cut)
	p.cut = nil
}

// idleAll completes a request on each connection.
func idleAll(slots []*Slot) {
	for _, s := range slots {
		s.Begin()
		s.End()
	}
}

func beginAll(slots []*Slot) {
	for _, s := range slots {
		s.Begin()
	}
}

const flooder, client, other = 1, 2, 3

// TestAFloodEvictsItsOwnConnections checks that a flood evicts only connections of its own source. In these tests the
// table has 16 slots and reserves one of them.
func TestAFloodEvictsItsOwnConnections(t *testing.T) {
	p := newPort(t, 16, 0)
	p.admit(flooder, 15)
	p.requireCut()
	p.admit(flooder, 2)
	p.requireCut(0, 1) // the oldest, while one slot is free
	p.admit(client, 1)
	p.requireCut()
	p.admit(flooder, 1)
	p.requireCut(2)
	p.admit(client, 3)
	p.requireCut(3, 4, 5)
	require.EqualValues(t, 6, p.evicted.Load())
	require.Equal(t, 16, p.table.Len())
}

func TestSilentConnectionsAreEvictedBeforeIdleOnes(t *testing.T) {
	p := newPort(t, 16, 0)
	idleAll(p.admit(client, 13))
	p.admit(flooder, 3)
	p.admit(other, 1)
	p.requireCut(13)
	p.admit(other, 1)
	p.requireCut(14)
	p.admit(other, 1) // other has two and the flooder one, so other loses its own
	p.requireCut(16)
}

// TestAHoardOfIdleConnectionsSparesAnotherSourcesOnlyOne checks that one of several idle connections of a source is
// evicted before the only silent connection of another source.
func TestAHoardOfIdleConnectionsSparesAnotherSourcesOnlyOne(t *testing.T) {
	p := newPort(t, 16, 0)
	hoard := p.admit(flooder, 15)
	idleAll(hoard)
	idleAll(hoard[:1]) // the longest idle is the second now
	p.admit(client, 1)
	p.admit(other, 1)
	p.requireCut(1)
}

func TestIdleConnectionsAreEvictedFairly(t *testing.T) {
	p := newPort(t, 16, 0)
	idleAll(p.admit(client, 7))
	idleAll(p.admit(flooder, 9))
	idleAll(p.admit(other, 1))
	p.requireCut(7)
	idleAll(p.admit(other, 1))
	p.requireCut(8)
	p.admit(flooder, 1) // client and flooder have seven each: the flooder's new connection evicts its own
	p.requireCut(9)
}

func TestBusyConnectionsAreNotEvicted(t *testing.T) {
	p := newPort(t, 16, 0)
	busy := p.admit(flooder, 15)
	beginAll(busy)
	_, err := p.try(flooder)
	require.ErrorIs(t, err, ErrFull, "one slot is reserved for others")
	beginAll(p.admit(client, 1))
	_, err = p.try(other)
	require.ErrorIs(t, err, ErrFull)
	require.Zero(t, p.evicted.Load())

	busy[3].Begin() // two requests are in flight
	busy[3].End()
	_, err = p.try(other)
	require.ErrorIs(t, err, ErrFull)
	busy[3].End()
	p.admit(other, 1)
	p.requireCut(3)

	busy[4].Release()
	busy[4].Release()
	p.admit(other, 1)
	p.requireCut()
	require.Equal(t, 16, p.table.Len())
}

// TestTheOldestOfEqualsIsEvicted checks that the oldest connection is evicted if all sources have equally many.
func TestTheOldestOfEqualsIsEvicted(t *testing.T) {
	p := newPort(t, 16, 0)
	for i := range 20 {
		p.admit(100+i, 1)
	}
	p.requireCut(0, 1, 2, 3)
}

func TestBoundOfASource(t *testing.T) {
	p := newPort(t, 16, 2)
	first := p.admit(client, 2)
	first[1].Begin()
	p.admit(client, 1)
	p.requireCut(0)
	p.slots[2].Begin()
	_, err := p.try(client)
	require.ErrorIs(t, err, ErrSourceFull)
	p.admit(other, 2)
	p.requireCut()
}

// TestAnEvictedConnectionFreesNothingMore checks that later calls for an evicted connection free no other slot. Its
// request may be answered after the eviction, and it is closed some time later.
func TestAnEvictedConnectionFreesNothingMore(t *testing.T) {
	p := newPort(t, 2, 0)
	gone := p.admit(client, 3)[0]
	p.requireCut(0)
	gone.Begin()
	gone.End()
	gone.Release()
	require.Equal(t, 2, p.table.Len())
	require.Empty(t, p.table.ranked[idle].sources)
	p.admit(other, 1)
	p.requireCut(1)
}

func TestATableForgetsSources(t *testing.T) {
	p := newPort(t, 16, 0)
	for i := range 100 {
		slot := p.admit(i, 1)[0]
		if i%2 == 0 {
			idleAll([]*Slot{slot})
		}
		slot.Release()
	}
	require.Empty(t, p.table.sources)
	require.Empty(t, p.table.ranked[unproven].sources)
	require.Empty(t, p.table.ranked[idle].sources)
}

// TestOneSourceKeepsNobodyOut checks that no source can exclude others. Sources with no more connections than there
// are reserved slots are always admitted, and none of their connections is evicted.
func TestOneSourceKeepsNobodyOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const most, reserved = 64, 4
		p := newPort(rt, most, 0)
		var honest []int // numbers of connections
		for range rapid.IntRange(1, 500).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0: // a client comes, after one has gone
				if len(honest) == reserved {
					p.slots[honest[0]].Release()
					honest = honest[1:]
				}
				n, err := p.try(client + rapid.IntRange(0, 2).Draw(rt, "client"))
				require.NoError(rt, err)
				honest = append(honest, n)
			case 1, 2:
				if len(p.slots) > 0 {
					beginAll(p.slots[rapid.IntRange(0, len(p.slots)-1).Draw(rt, "busy"):][:1])
				}
			case 3:
				if len(p.slots) > 0 {
					idleAll(p.slots[rapid.IntRange(0, len(p.slots)-1).Draw(rt, "idle"):][:1])
				}
			default:
				_, err := p.try(flooder)
				require.True(rt, err == nil || err == ErrFull)
			}
			require.LessOrEqual(rt, p.table.Len(), most)
			require.False(rt, slices.ContainsFunc(p.cut, func(n int) bool { return slices.Contains(honest, n) }),
				"%v of %v", p.cut, honest)
			p.cut = nil
		}
	})
}

// TestConnectionsWithoutASource checks that the clients of a Unix socket do not count as one source.
func TestConnectionsWithoutASource(t *testing.T) {
	table := New(10, 2, new(atomic.Int64))
	for range 3 {
		_, err := table.Admit(netip.Addr{}, func() { t.Error("evicted") })
		require.NoError(t, err)
	}
}
