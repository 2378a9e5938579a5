package sharedlog_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weir-project/weir/raftstore/sharedlog"
	"github.com/weir-project/weir/raftstore/wallog"
)

// counted counts the appends of a log, each of which is one fsync.
type counted struct {
	*wallog.Log
	appends *atomic.Int64
}

func (c counted) StoreLogs(ls []*raft.Log) error {
	c.appends.Add(1)
	return c.Log.StoreLogs(ls)
}

// StoreLog is not that of the library, which would not be counted.
func (c counted) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

func openFiles(b *testing.B, dir string, appends *atomic.Int64) counted {
	w, err := wallog.Open(dir, true, hclog.NewNullLogger())
	require.NoError(b, err)
	return counted{w, appends}
}

// BenchmarkGroups writes entries of several groups at the same time, to logs of their own and to a shared log. It
// reports fsyncs and CPU time an entry.
func BenchmarkGroups(b *testing.B) {
	for _, groups := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("%d/own", groups), func(b *testing.B) {
			var appends atomic.Int64
			var stores []raft.LogStore
			dir := b.TempDir()
			for i := range groups {
				w := openFiles(b, filepath.Join(dir, fmt.Sprint(i)), &appends)
				defer w.Close()
				stores = append(stores, w)
			}
			writeAll(b, stores, &appends)
		})
		b.Run(fmt.Sprintf("%d/shared", groups), func(b *testing.B) {
			var appends atomic.Int64
			var stores []raft.LogStore
			w := openFiles(b, b.TempDir(), &appends)
			l := sharedlog.New(func() (sharedlog.Base, error) { return w, nil }, sharedlog.Limits{})
			defer l.Close()
			for i := range groups {
				p, err := l.Part(uint32(i + 1))
				require.NoError(b, err)
				stores = append(stores, p)
			}
			writeAll(b, stores, &appends)
		})
	}
}

func writeAll(b *testing.B, stores []raft.LogStore, appends *atomic.Int64) {
	const entryBytes, compact = 300, 1000
	before := cpuNs(b)
	b.ResetTimer()
	var running sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	for _, s := range stores {
		running.Go(func() {
			for i := uint64(1); left.Add(-1) >= 0; i++ {
				if err := s.StoreLog(entry(i, 1, entryBytes)); err != nil {
					panic(err)
				}
				if i%compact == 0 {
					if err := s.DeleteRange(1, i-compact/2); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(appends.Load())/float64(b.N), "fsyncs/entry")
	b.ReportMetric(float64(cpuNs(b)-before)/float64(b.N), "cpu-ns/entry")
}

func cpuNs(b *testing.B) int64 {
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkOpen opens a shared log with the entries of 16 groups.
func BenchmarkOpen(b *testing.B) {
	const parts, each, entryBytes = 16, 10_000, 300
	dir := b.TempDir()
	openIt := func() *sharedlog.Log {
		return sharedlog.New(func() (sharedlog.Base, error) {
			return wallog.Open(dir, false, hclog.NewNullLogger())
		}, sharedlog.Limits{})
	}
	l := openIt()
	for i := range uint32(parts) {
		p, err := l.Part(i + 1)
		require.NoError(b, err)
		for n := uint64(1); n <= each; n += 50 {
			var ls []*raft.Log
			for k := range uint64(50) {
				ls = append(ls, entry(n+k, 1, entryBytes))
			}
			require.NoError(b, p.StoreLogs(ls))
		}
	}
	require.NoError(b, l.Close())
	for b.Loop() {
		l := openIt()
		_, err := l.Part(1)
		require.NoError(b, err)
		require.NoError(b, l.Close())
	}
}
