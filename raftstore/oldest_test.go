package raftstore_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestADirectoryOfTheOldestVersion starts a node in a directory that the first commit of weir 0.1.0 wrote. A part of
// its state is in an image, and the log after it has an entry in each format up to wire.Oldest. The node decides from
// this state, by the old rules at first, writes newer formats behind it, and starts again.
func TestADirectoryOfTheOldestVersion(t *testing.T) {
	c := newCluster(t, 1, func(_ int, o *raftstore.Options) {
		o.TestClock = true
		require.NoError(t, os.CopyFS(o.DataDir, os.DirFS(filepath.Join("testdata", "oldest"))))
	})
	n, _ := c.leader()
	require.EqualValues(t, wire.Oldest, n.Written())
	require.EqualValues(t, 7, c.decideOn(n, quota("key", 10))[0].Remaining)
	again := quota("once", 10)
	again.ID = []byte("request-1")
	require.EqualValues(t, 9, c.decideOn(n, again)[0].Remaining, "the answer of the first time")
	require.EqualValues(t, 6, c.decideOn(n, check(1, "burst", "user"))[0].Remaining)
	require.EqualValues(t, 2, c.decideOn(n, check(1, "daily", "user"))[0].Remaining)
	require.Zero(t, c.decideOn(n, quota("login|ip:192.0.2.66", 10))[0].Allowed)
	require.Zero(t, c.decideOn(n, check(1, "login", "user"))[0].Allowed, "the second strike has a penalty")
	require.EqualValues(t, 1, c.decideOn(n, check(1, "login", "another"))[0].Allowed)
	require.Equal(t, "team-a", n.Policies().Get([]byte("daily")).Owner)

	require.Equal(t, engine.OK, c.decideOn(n, onText(engine.TextSet, "text", "state"))[0].Status)
	require.Greater(t, n.Written(), byte(wire.Oldest))
	c.stop(0)
	c.restart(0)
	n, _ = c.leader()
	require.Equal(t, "state", c.decideOn(n, onText(engine.CountGet, "text"))[0].Value)
	require.EqualValues(t, 6, c.decideOn(n, quota("key", 10))[0].Remaining)
}

// TestADamagedLogDoesNotMove checks that a node whose own log is damaged does not start, and that its directory stays as
// it is.
func TestADamagedLogDoesNotMove(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "oldest"))))
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	require.NoError(t, err)
	b, err := os.ReadFile(segments[0])
	require.NoError(t, err)
	b[200] ^= 1
	require.NoError(t, os.WriteFile(segments[0], b, 0o600))
	identity, err := os.ReadFile(filepath.Join(dir, "NODE"))
	require.NoError(t, err)
	_, err = raftstore.OpenAlone(raftstore.Options{
		NodeID: "n0", DataDir: dir, RaftAddr: "127.0.0.1:1", ClientAddr: "client", Listener: listener(t),
		TestClock: true, Logger: slog.New(slog.DiscardHandler),
	})
	require.ErrorIs(t, err, wal.ErrCorrupt)
	after, err := os.ReadFile(filepath.Join(dir, "NODE"))
	require.NoError(t, err)
	require.Equal(t, identity, after, "the version that wrote the directory can still read it")
	require.NoDirExists(t, filepath.Join(dir, "shared-log"))
	require.NoFileExists(t, filepath.Join(dir, "log-part"))
}

// TestAnInterruptedMoveBeginsAgain starts a node whose log has not moved into the shared log completely, and then one
// whose former log was not removed completely. What an earlier move has written counts for nothing.
func TestAnInterruptedMoveBeginsAgain(t *testing.T) {
	oldest := filepath.Join("testdata", "oldest")
	c := newCluster(t, 1, func(_ int, o *raftstore.Options) {
		o.TestClock = true
		require.NoError(t, os.CopyFS(o.DataDir, os.DirFS(oldest)))
	})
	n, _ := c.leader()
	require.EqualValues(t, 7, c.decideOn(n, quota("key", 10))[0].Remaining)
	c.stop(0)
	in := func(name string) string { return filepath.Join(c.opts[0].DataDir, name) }
	require.NoDirExists(t, in("log"))
	part, err := os.ReadFile(in("log-part"))
	require.NoError(t, err)

	require.NoError(t, os.CopyFS(in("log"), os.DirFS(filepath.Join(oldest, "log"))))
	require.NoError(t, os.Mkdir(in("log.moved"), 0o700))
	c.restart(0)
	n, _ = c.leader()
	require.EqualValues(t, 7, c.decideOn(n, quota("key", 10))[0].Remaining)
	again, err := os.ReadFile(in("log-part"))
	require.NoError(t, err)
	require.NotEqual(t, part, again)
	require.NoDirExists(t, in("log"))
	require.NoDirExists(t, in("log.moved"))
}
