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
	"github.com/weir-project/weir/internal/freeport"
)

// carelessly runs weir with a umask of 000.
func carelessly() *exec.Cmd { return exec.Command("sh", "-c", `umask 000; exec "$0" "$@"`, binary) }

// requirePrivate checks that only the owner can access the files of a directory, and that the directory is not empty.
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

// TestFilesOfOneNodeArePrivate checks that only the owner can access the files of a single server, of its backup and
// of a restore. A directory that others can read is narrowed.
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
	require.Contains(t, p.output(),
		"changed the mode of files in the data directory, so that only this user can read them")
}

// TestFilesOfAClusterArePrivate checks the same for three nodes, with one image that a leader made and one that a
// node received.
func TestFilesOfAClusterArePrivate(t *testing.T) {
	dir := t.TempDir()
	first, others := freeport.Addr(t), []string{freeport.Addr(t), freeport.Addr(t)}
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
		require.DirExists(t, filepath.Join(node, "shared-log"))
		requirePrivate(t, node)
		p.stop()
		requirePrivate(t, node)
	}
}

// TestNarrowTouchesOnlyWhatIsWeirs checks that only the files of weir are narrowed. Other files and the directory
// keep their modes.
func TestNarrowTouchesOnlyWhatIsWeirs(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{"notes.txt", "log.txt", "logs", "statement", "NODE", "NODE.tmp"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o666))
	}
	group := filepath.Join(dir, "groups", "0001", "NODE")
	require.NoError(t, os.MkdirAll(filepath.Dir(group), 0o700))
	require.NoError(t, os.WriteFile(group, nil, 0o600))
	require.NoError(t, os.Chmod(group, 0o644))
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
		group: 0o600, filepath.Join(dir, "NODE"): 0o600, filepath.Join(dir, "NODE.tmp"): 0o600,
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(mode), fmt.Sprint(info.Mode().Perm()), path)
	}
}

// TestNarrowLeavesADirectoryOfSomethingElse checks that a directory which is not weir's is left alone. A user may
// name /var by mistake, and /var has a log too.
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
