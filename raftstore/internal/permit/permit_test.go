package permit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/permit"
)

// bench is a permit and the snapshots that have it, in the order in which they got it.
type bench struct {
	permit permit.Permit
	stop   chan struct{}
	got    chan string
}

func newBench() *bench { return &bench{stop: make(chan struct{}), got: make(chan string, 100)} }

// group waits for the permit as a group with a log of this length, and operator as an operator's request. Nothing is
// received from got if stop is closed first.
func (b *bench) group(name string, bytes int64) {
	go b.note(name, func() bool { return b.permit.Acquire(func() int64 { return bytes }, b.stop) })
	synctest.Wait()
}

func (b *bench) operator(name string) {
	go b.note(name, func() bool { return b.permit.AcquireForOperator(b.stop) })
	synctest.Wait()
}

func (b *bench) note(name string, acquire func() bool) {
	if acquire() {
		b.got <- name
	}
}

// holds returns the snapshots that got the permit since the last call.
func (b *bench) holds() (names []string) {
	synctest.Wait()
	for len(b.got) > 0 {
		names = append(names, <-b.got)
	}
	return names
}

// TestOrder checks that one snapshot is taken at a time, that an operator comes first, and then the longest log.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.group("first", 1)
		b.group("short", 10)
		b.group("long", 30)
		b.operator("operator")
		b.group("middle", 20)
		b.operator("next operator")
		for _, want := range []string{"first", "operator", "next operator", "long", "middle", "short"} {
			require.Equal(t, []string{want}, b.holds())
			b.permit.Release()
		}
		b.group("again", 1)
		require.Equal(t, []string{"again"}, b.holds())
		b.permit.Release()
	})
}

// TestTheLogGrowsMeanwhile checks that the length of a log counts when the permit is free, not when the wait began.
func TestTheLogGrowsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.group("first", 1)
		grown := int64(1)
		go b.note("grown", func() bool { return b.permit.Acquire(func() int64 { return grown }, b.stop) })
		b.group("second", 10)
		require.Equal(t, []string{"first"}, b.holds())
		grown = 11
		b.permit.Release()
		require.Equal(t, []string{"grown"}, b.holds())
		b.permit.Release()
		require.Equal(t, []string{"second"}, b.holds())
		b.permit.Release()
	})
}

// TestASnapshotThatHangs checks that a wait is bounded, and that snapshots are taken one at a time again afterwards.
func TestASnapshotThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.group("hangs", 1)
		b.holds()
		b.group("waits", 1)
		b.operator("operator")
		time.Sleep(permit.OperatorPatience - 1)
		require.Empty(t, b.holds())
		time.Sleep(time.Nanosecond)
		require.Equal(t, []string{"operator"}, b.holds())
		time.Sleep(permit.Patience - permit.OperatorPatience - 1)
		require.Empty(t, b.holds())
		time.Sleep(time.Nanosecond)
		require.Equal(t, []string{"waits"}, b.holds())
		b.group("last", 1)
		for range 2 {
			b.permit.Release()
			require.Empty(t, b.holds(), "another snapshot is still under way")
		}
		b.permit.Release()
		require.Equal(t, []string{"last"}, b.holds())
		b.permit.Release()
	})
}

// TestAGroupThatCloses checks that a group that closes neither waits nor keeps the permit.
func TestAGroupThatCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.group("first", 1)
		b.group("closes", 1)
		b.operator("closes, too")
		require.Equal(t, []string{"first"}, b.holds())
		close(b.stop)
		synctest.Wait()
		b.permit.Release()
		require.Empty(t, b.holds())
		b.stop = make(chan struct{})
		b.group("other", 1)
		require.Equal(t, []string{"other"}, b.holds())
		b.permit.Release()
	})
}
