package sharedlog_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/sharedlog"
)

// gated returns a Base whose appends wait until release lets one pass, and tells that one has begun.
func gated() (base *memory, begun func(), release func()) {
	base = newMemory()
	base.gate, base.begun = make(chan struct{}), make(chan struct{}, 100)
	return base, func() { <-base.begun }, func() { base.gate <- struct{}{} }
}

// TestOneAppendForAllThatWait checks group commit: while an append is under way, the writes of other parts wait, and
// then they share one append. No write is answered before its append has returned.
func TestOneAppendForAllThatWait(t *testing.T) {
	const parts = 10
	base, begun, release := gated()
	l := open(base, sharedlog.Limits{})
	answered := make(chan error, parts)
	store := func(p *sharedlog.Part) { answered <- p.StoreLog(entry(1, 1, 10)) }
	first := part(t, l, 1)
	go store(first)
	begun()
	var all []*sharedlog.Part
	for i := range uint32(parts - 1) {
		all = append(all, part(t, l, i+2))
		go store(all[i])
	}
	sharedlog.AwaitWaiting(l, parts-1)
	require.Empty(t, answered, "nothing is on disk yet")
	last, err := first.LastIndex()
	require.NoError(t, err)
	require.Zero(t, last)

	release()
	require.NoError(t, <-answered)
	begun()
	require.Empty(t, answered)
	for _, p := range all {
		require.ErrorIs(t, p.GetLog(1, new(raft.Log)), raft.ErrLogNotFound)
	}
	release()
	for range all {
		require.NoError(t, <-answered)
	}
	require.Equal(t, 2, base.appends)
	require.NoError(t, l.Close())
}

// TestAnAppendIsBounded checks that requests beyond the bound of an append wait for the next append.
func TestAnAppendIsBounded(t *testing.T) {
	base, begun, release := gated()
	l := open(base, sharedlog.Limits{})
	var done sync.WaitGroup
	parts := []*sharedlog.Part{part(t, l, 1), part(t, l, 2), part(t, l, 3), part(t, l, 4)}
	done.Go(func() { _ = parts[0].StoreLog(entry(1, 1, 10)) })
	begun()
	for _, p := range parts[1:] {
		done.Go(func() { _ = p.StoreLog(entry(1, 1, sharedlog.MaxBatchBytes/2)) })
	}
	sharedlog.AwaitWaiting(l, 3)
	for range 3 {
		release()
		begun()
	}
	release()
	done.Wait()
	require.Equal(t, 4, base.appends)
	require.NoError(t, l.Close())
}

// TestAFailedAppendEndsAllWrites checks that a failed append fails the writes of all parts from then on, also after the
// disk works again. What was acknowledged before can be read.
func TestAFailedAppendEndsAllWrites(t *testing.T) {
	base := newMemory()
	l := open(base, small)
	one, two := part(t, l, 1), part(t, l, 2)
	require.NoError(t, one.StoreLog(entry(1, 1, 10)))
	base.fails = true
	require.ErrorIs(t, one.StoreLog(entry(2, 1, 10)), errDisk)
	base.fails = false
	require.ErrorIs(t, two.StoreLog(entry(1, 1, 10)), errDisk)
	require.ErrorIs(t, one.SetUint64([]byte("term"), 2), errDisk)
	require.ErrorIs(t, one.DeleteRange(1, 1), errDisk)
	require.NoError(t, one.GetLog(1, new(raft.Log)))
	last, err := one.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 1, last)
	require.NoError(t, l.Close())
}

// TestAWrongWriteFailsAlone checks that a write which the Raft library must not make fails, and that the log goes on.
func TestAWrongWriteFailsAlone(t *testing.T) {
	l := open(newMemory(), small)
	p := part(t, l, 1)
	require.NoError(t, p.StoreLogs([]*raft.Log{entry(5, 1, 10), entry(6, 1, 10), entry(7, 1, 10)}))
	for _, index := range []uint64{0, 6, 7, 9} {
		require.ErrorContains(t, p.StoreLog(entry(index, 1, 10)), "non-monotonic")
	}
	require.ErrorContains(t, p.StoreLogs([]*raft.Log{entry(8, 1, 10), entry(10, 1, 10)}), "non-monotonic")
	require.ErrorContains(t, p.DeleteRange(6, 6), "at the beginning or at the end")
	require.NoError(t, p.DeleteRange(1, 4))
	require.NoError(t, p.DeleteRange(8, 9))
	require.NoError(t, p.StoreLogs(nil))
	require.NoError(t, p.StoreLog(entry(8, 1, 10)))
	require.True(t, p.IsMonotonic())
	require.NoError(t, p.Set([]byte("name"), []byte("three")))
	_, err := p.GetUint64([]byte("name"))
	require.ErrorContains(t, err, "no number")
	none, err := p.Get([]byte("other"))
	require.NoError(t, err)
	require.Nil(t, none)
	require.NoError(t, l.Close())
}

// TestAClosedLogTakesNothing checks a log that is closed, or was never opened.
func TestAClosedLogTakesNothing(t *testing.T) {
	l := open(newMemory(), small)
	require.NoError(t, l.DropClosed())
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err := l.Part(1)
	require.Error(t, err)

	l = sharedlog.New(func() (sharedlog.Base, error) { return nil, errDisk }, small)
	for range 2 {
		_, err = l.Part(1)
		require.ErrorIs(t, err, errDisk)
	}
	require.NoError(t, l.Close())
}

// TestGroupsOfOneMomentShareAnAppend checks that parts which write at the same moment share an append, although no
// append is under way: the first writer lets the others run before it writes. With one processor the test is exact,
// except for a writer that the scheduler interrupts.
func TestGroupsOfOneMomentShareAnAppend(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const parts = 20
	base := newMemory()
	l := open(base, sharedlog.Limits{})
	var running sync.WaitGroup
	for i := range uint32(parts) {
		p := part(t, l, i+1)
		running.Go(func() { require.NoError(t, p.StoreLog(entry(1, 1, 10))) })
	}
	running.Wait()
	require.Less(t, base.appends, parts/2)
	require.NoError(t, l.Close())
}
