package main

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/healthcheck"
)

// carelessly runs weir under a mask that takes nothing away.
func carelessly() *exec.Cmd { return exec.Command("sh", "-c", `umask 000; exec "$0" "$@"`, binary) }

// requirePrivate checks that nobody but the owner may do anything with what is in a directory,
// and that there is something.
func requirePrivate(t *testing.T, dir string) {
	t.Helper()
	found := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode()&othersBits, "%s is %s", path, info.Mode())
		found++
		return nil
	}))
	require.Greater(t, found, 5)
}

// What a server that runs alone leaves on disk, a backup of it, and what is made of that, are
// its user's alone. A directory that an earlier weir left to others is narrowed.
func TestFilesOfOneNodeArePrivate(t *testing.T) {
	dir := t.TempDir()
	one, two, file := filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "backup")
	p := startCommand(t, carelessly(), "--data-dir="+one)
	fillForBackup(p)
	weir(t, "backup", "--addr", p.addr, file)
	p.stop()
	requirePrivate(t, one)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode())

	restore := carelessly()
	restore.Args = append(restore.Args, "restore", file, "--data-dir", two)
	out, err := restore.CombinedOutput()
	require.NoError(t, err, "%s", out)
	requirePrivate(t, two)

	require.NoError(t, filepath.WalkDir(two, func(path string, _ fs.DirEntry, err error) error {
		return os.Chmod(path, 0o777)
	}))
	require.NoError(t, os.Chmod(two, 0o700))
	p = startCommand(t, carelessly(), "--data-dir="+two)
	holdsTheBackup(p)
	requirePrivate(t, two)
	require.Contains(t, p.output(), "files of the data directory are now for this user only")
}

// The same for a cluster of three, with an image that the leader was told to make and a node
// that got it from another.
func TestFilesOfAClusterArePrivate(t *testing.T) {
	dir := t.TempDir()
	first, others := freeAddr(t), []string{freeAddr(t), freeAddr(t)}
	begin := func(id, raft string, more ...string) *process {
		args := append([]string{"--node-id=" + id, "--raft-addr=" + raft, "--data-dir=" + filepath.Join(dir, id)},
			more...)
		p := startCommand(t, carelessly(), args...)
		require.Eventually(t, func() bool {
			return (&healthcheck.Command{HTTP: strings.TrimPrefix(p.web, "http://")}).Ask(io.Discard) == nil
		}, patience, 10*time.Millisecond, "%s", p.output())
		return p
	}
	leader := begin("a", first, "--join="+first)
	fillForBackup(leader)
	weir(t, "cluster", "--addr", leader.addr, "snapshot")
	nodes := []*process{leader}
	for i, raft := range others {
		nodes = append(nodes, begin(string(rune('b'+i)), raft, "--join="+first))
	}
	weir(t, "backup", "--addr", leader.addr, filepath.Join(dir, "backup"))
	for i, p := range nodes {
		node := filepath.Join(dir, string(rune('a'+i)))
		require.FileExists(t, filepath.Join(node, "NODE"))
		require.DirExists(t, filepath.Join(node, "log"))
		requirePrivate(t, node)
		p.stop()
		requirePrivate(t, node)
	}
}

// What is not weir's stays as it is, and so does the directory.
func TestNarrowTouchesOnlyWhatIsWeirs(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{"notes.txt", "log.txt", "logs", "statement", "NODE", "NODE.tmp"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o666))
	}
	segment := filepath.Join(elsewhere, "00000001.wal")
	require.NoError(t, os.WriteFile(segment, nil, 0o600))
	require.NoError(t, os.Chmod(segment, 0o644))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "log")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "notes.txt"), filepath.Join(elsewhere, "link")))
	require.NoError(t, os.Chmod(dir, 0o755))
	narrow(slog.New(slog.DiscardHandler), dir)
	narrow(slog.New(slog.DiscardHandler), filepath.Join(dir, "none"))
	for path, mode := range map[string]fs.FileMode{
		dir: 0o755, filepath.Join(dir, "notes.txt"): 0o666, filepath.Join(dir, "log.txt"): 0o666,
		filepath.Join(dir, "logs"): 0o666, filepath.Join(dir, "statement"): 0o666, elsewhere: 0o700, segment: 0o600,
		filepath.Join(dir, "NODE"): 0o600, filepath.Join(dir, "NODE.tmp"): 0o600,
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(mode), fmt.Sprint(info.Mode().Perm()), path)
	}
}

// A directory that is not weir's, named by mistake, is left alone: /var has a log too.
func TestNarrowLeavesADirectoryOfSomethingElse(t *testing.T) {
	dir := t.TempDir()
	syslog := filepath.Join(dir, "log", "syslog")
	require.NoError(t, os.Mkdir(filepath.Dir(syslog), 0o700))
	require.NoError(t, os.WriteFile(syslog, nil, 0o600))
	require.NoError(t, os.Chmod(syslog, 0o644))
	narrow(slog.New(slog.DiscardHandler), dir)
	info, err := os.Stat(syslog)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
}
