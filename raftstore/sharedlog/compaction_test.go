package sharedlog_test

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/sharedlog"
)

// fill stores entries from an index on, and removes all but the last of them, as a busy group with snapshots does.
func fill(t *testing.T, l *sharedlog.Log, p *sharedlog.Part, from, to uint64) {
	t.Helper()
	for i := from; i <= to; i++ {
		require.NoError(t, p.StoreLog(entry(i, 1, 100)))
		require.NoError(t, p.DeleteRange(1, i-1))
	}
	sharedlog.AwaitCompaction(l)
}

// TestTermsAndVotesOutliveTheirRecords checks that a vote which is older than all entries is written again before the
// log is truncated.
func TestTermsAndVotesOutliveTheirRecords(t *testing.T) {
	base := newMemory()
	l := open(base, small)
	voter, busy := part(t, l, 1), part(t, l, 2)
	require.NoError(t, voter.SetUint64([]byte("CurrentTerm"), 7))
	require.NoError(t, voter.Set([]byte("LastVoteCand"), []byte("n2")))
	fill(t, l, busy, 1, 1000)
	require.Greater(t, base.first, uint64(1000), "the first records must be gone")
	all, _ := l.Size()
	require.Less(t, all, small.FreeBytes+small.DeadBytes)
	require.NoError(t, l.Close())

	l = open(base, small)
	voter = part(t, l, 1)
	term, err := voter.GetUint64([]byte("CurrentTerm"))
	require.NoError(t, err)
	require.EqualValues(t, 7, term)
	vote, err := voter.Get([]byte("LastVoteCand"))
	require.NoError(t, err)
	require.Equal(t, "n2", string(vote))
	require.NoError(t, l.Close())
}

// TestAnIdlePartDoesNotKeepTheLog checks a part that keeps its old entries while another one writes. The part is asked
// for a snapshot first. Then its entries are written again, and the log stays within its bound.
func TestAnIdlePartDoesNotKeepTheLog(t *testing.T) {
	const kept = 40
	base := newMemory()
	l := open(base, small)
	idle, busy := part(t, l, 1), part(t, l, 2)
	asked, deadWhenAsked := 0, int64(0)
	idle.OnPinned(func(uint64) {
		if asked++; asked == 1 {
			all, live := l.Size()
			deadWhenAsked = all - live
		}
	})
	for i := range uint64(kept) {
		require.NoError(t, idle.StoreLog(entry(i+1, 3, 50)))
	}
	for i := uint64(1); i <= 2000; i++ {
		fill(t, l, busy, i, i)
		all, live := l.Size()
		require.Less(t, all, live+small.DeadBytes+small.FreeBytes)
	}
	require.Greater(t, base.first, uint64(kept), "the first records must be gone")
	require.Positive(t, asked)
	require.Less(t, deadWhenAsked, small.DeadBytes, "the snapshot comes before the records are written again")
	require.NoError(t, l.Close())

	l = open(base, small)
	idle = part(t, l, 1)
	for i := range uint64(kept) {
		var got raft.Log
		require.NoError(t, idle.GetLog(i+1, &got))
		require.True(t, same(entry(i+1, 3, 50), &got))
	}
	require.NoError(t, l.Close())
}

// TestASnapshotFreesTheLog checks that a part which answers with a snapshot is not written again.
func TestASnapshotFreesTheLog(t *testing.T) {
	base := newMemory()
	l := open(base, small)
	idle, busy := part(t, l, 1), part(t, l, 2)
	due := make(chan struct{}, 1)
	idle.OnPinned(func(uint64) {
		select {
		case due <- struct{}{}:
		default: // between the two removals the compactor asks again
		}
	})
	require.NoError(t, idle.StoreLog(entry(1, 1, 10)))
	require.NoError(t, idle.StoreLog(entry(2, 1, 10)))
	next := uint64(1)
	for len(due) == 0 {
		fill(t, l, busy, next, next)
		next++
	}
	require.NoError(t, idle.DeleteRange(1, 1))
	require.NoError(t, idle.DeleteRange(2, 2))
	appends := base.appends
	sharedlog.AwaitCompaction(l)
	require.Equal(t, appends, base.appends)
	require.Greater(t, base.first, uint64(2))
	require.NoError(t, l.Close())
}

// TestASlowPartIsAskedNowAndThen checks a part that writes an entry now and then, beside a busy one. The index that it is
// asked for lets a file go, and leaves it its later entries. It is asked once for each file, so the log is never
// written again.
func TestASlowPartIsAskedNowAndThen(t *testing.T) {
	base := newMemory()
	limits := sharedlog.Limits{FreeBytes: small.FreeBytes, DeadBytes: 4 * small.FreeBytes} // as by default
	l := open(base, limits)
	slow, busy := part(t, l, 1), part(t, l, 2)
	asked, last, written := 0, uint64(0), int64(0)
	low := make(chan uint64, 10)
	slow.OnPinned(func(index uint64) { low <- index })
	for i := uint64(1); i <= 2000; i++ {
		if i%10 == 1 {
			last++
			require.NoError(t, slow.StoreLog(entry(last, 1, 10)))
			if first, err := slow.FirstIndex(); i > 1000 {
				require.NoError(t, err)
				require.Less(t, first, last, "the later entries stay")
			}
		}
		before, _ := l.Size()
		fill(t, l, busy, i, i)
		if all, live := l.Size(); all > before {
			written += all - before
			require.Less(t, all-live, limits.DeadBytes)
		}
		for ; len(low) > 0; asked++ {
			first, err := slow.FirstIndex()
			require.NoError(t, err)
			require.NoError(t, slow.DeleteRange(first, <-low-1))
		}
	}
	require.Greater(t, asked, 2)
	require.LessOrEqual(t, int64(asked), written/limits.FreeBytes+1)
	require.NoError(t, l.Close())
}

// TestADroppedPartIsFree checks that a part which is not open any more loses its records for good.
func TestADroppedPartIsFree(t *testing.T) {
	base := newMemory()
	l := open(base, small)
	ended, busy := part(t, l, 1), part(t, l, 2)
	_, err := l.Part(1)
	require.ErrorContains(t, err, "in use")
	require.NoError(t, ended.SetUint64([]byte("CurrentTerm"), 7))
	for i := range uint64(100) {
		require.NoError(t, ended.StoreLog(entry(i+1, 1, 100)))
	}
	require.NoError(t, l.DropClosed(), "an open part must stay")
	last, err := ended.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 100, last)
	require.NoError(t, ended.Close())
	require.NoError(t, l.DropClosed())
	sharedlog.AwaitCompaction(l)
	require.Greater(t, base.first, uint64(100))
	fill(t, l, busy, 1, 2)
	require.NoError(t, l.Close())

	for range 2 { // with and without another drop
		l = open(base, small)
		ended, busy = part(t, l, 1), part(t, l, 2)
		last, err = ended.LastIndex()
		require.NoError(t, err)
		require.Zero(t, last)
		term, err := ended.GetUint64([]byte("CurrentTerm"))
		require.NoError(t, err)
		require.Zero(t, term)
		last, err = busy.LastIndex()
		require.NoError(t, err)
		require.EqualValues(t, 2, last)
		require.NoError(t, ended.Close())
		require.NoError(t, l.DropClosed())
		require.NoError(t, l.Close())
	}
}

// TestAPartThatNobodyOpensIsDropped checks a part whose group did not open after a restart.
func TestAPartThatNobodyOpensIsDropped(t *testing.T) {
	base := newMemory()
	l := open(base, small)
	require.NoError(t, part(t, l, 1).StoreLog(entry(1, 1, 100)))
	require.NoError(t, part(t, l, 2).StoreLog(entry(1, 1, 100)))
	require.NoError(t, l.Close())
	l = open(base, small)
	part(t, l, 2)
	require.NoError(t, l.DropClosed())
	_, live := l.Size()
	require.Less(t, live, int64(200))
	require.NoError(t, l.Close())
	l = open(base, small)
	last, err := part(t, l, 1).LastIndex()
	require.NoError(t, err)
	require.Zero(t, last)
	last, err = part(t, l, 2).LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 1, last)
	require.NoError(t, l.Close())
}

// TestATruncationThatFailsEndsAllWrites checks that a Base that cannot be truncated fails the next write.
func TestATruncationThatFailsEndsAllWrites(t *testing.T) {
	base := newMemory()
	base.noTruncate = true
	l := open(base, small)
	p := part(t, l, 1)
	var err error
	for i := uint64(1); err == nil; i++ {
		if err = p.StoreLog(entry(i, 1, 100)); err == nil {
			err = p.DeleteRange(1, i-1)
		}
		sharedlog.AwaitCompaction(l)
	}
	require.ErrorIs(t, err, errDisk)
	require.NoError(t, l.Close())
}
