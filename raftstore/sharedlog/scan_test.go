package sharedlog_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/sharedlog"
)

// TestALogThatIsNoneIsRefused checks records that no shared log writes, and an entry that is missing between others.
func TestALogThatIsNoneIsRefused(t *testing.T) {
	const last = 3
	for name, do := range map[string]func(*memory){
		"a log of one group": func(m *memory) { m.set(2, func(l *raft.Log) { l.Extensions = nil }) },
		"an unknown kind":    func(m *memory) { m.set(2, func(l *raft.Log) { l.Extensions[0] = 9 }) },
		"no part":            func(m *memory) { m.set(2, func(l *raft.Log) { l.Extensions[1] = 0 }) },
		"a short header":     func(m *memory) { m.set(2, func(l *raft.Log) { l.Extensions = l.Extensions[:2] }) },
		"a missing entry":    func(m *memory) { m.set(2, func(l *raft.Log) { l.Extensions = sharedlog.Record(2, 2) }) },
		"a missing record":   func(m *memory) { delete(m.logs, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			base := newMemory()
			l := open(base, small)
			p := part(t, l, 1)
			for i := range uint64(last) {
				require.NoError(t, p.StoreLog(entry(i+1, 1, 10)))
			}
			do(base)
			err := p.GetLog(2, new(raft.Log))
			require.ErrorIs(t, err, wal.ErrCorrupt)
			require.NoError(t, p.GetLog(1, new(raft.Log)))
			require.NoError(t, l.Close())
			_, err = open(base, small).Part(1)
			require.Error(t, err)
			if name != "a missing record" { // wallog reports it
				require.ErrorIs(t, err, wal.ErrCorrupt)
			}
		})
	}
}

func (m *memory) set(index uint64, change func(*raft.Log)) {
	l := m.logs[index]
	change(&l)
	m.logs[index] = l
}

// TestTheNameOfAPart checks that a directory keeps the name of its part, and that any damage to it is noticed.
func TestTheNameOfAPart(t *testing.T) {
	on := vfs.NewMem()
	require.NoError(t, on.MkdirAll("/d", 0o755))
	require.NoError(t, on.MkdirAll("/e", 0o755))
	name, err := sharedlog.Name(on, "/d", "log-part")
	require.NoError(t, err)
	require.NotZero(t, name)
	again, err := sharedlog.Name(on, "/d", "log-part")
	require.NoError(t, err)
	require.Equal(t, name, again)
	other, err := sharedlog.Name(on, "/e", "log-part")
	require.NoError(t, err)
	require.NotEqual(t, name, other)

	read := func() []byte {
		f, err := on.Open("/d/log-part")
		require.NoError(t, err)
		b := make([]byte, 100)
		n, _ := f.Read(b)
		require.NoError(t, f.Close())
		return b[:n]
	}
	write := func(b []byte) {
		f, err := on.Create("/d/log-part", vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write(b)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	whole := read()
	for i := range whole {
		for bit := range 8 {
			b := append([]byte(nil), whole...)
			b[i] ^= 1 << bit
			write(b)
			got, err := sharedlog.Name(on, "/d", "log-part")
			if err == nil { // the other case of a hexadecimal digit
				require.Equal(t, name, got)
				continue
			}
			require.ErrorIs(t, err, wal.ErrCorrupt)
		}
		write(whole[:i])
		_, err := sharedlog.Name(on, "/d", "log-part")
		require.ErrorIs(t, err, wal.ErrCorrupt)
	}
	write(append(whole, '\n'))
	_, err = sharedlog.Name(on, "/d", "log-part")
	require.ErrorIs(t, err, wal.ErrCorrupt)
}
