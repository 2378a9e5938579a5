package filewatch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// folder is a directory whose files a test changes. Each write gets a later time than the one before.
type folder struct {
	t     *testing.T
	dir   string
	w     *Watcher
	clock time.Time
}

func newFolder(t *testing.T) *folder {
	return &folder{t: t, dir: t.TempDir(), clock: time.Unix(1_700_000_000, 0)}
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) write(name, text string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path(name), []byte(text), 0o600))
	f.clock = f.clock.Add(time.Second)
	require.NoError(f.t, os.Chtimes(f.path(name), f.clock, f.clock))
}

// watch begins to watch a path of the folder, and requires its content.
func (f *folder) watch(name string, want ...string) {
	f.t.Helper()
	f.w = New(100, f.path(name))
	files, err := f.w.Read()
	require.NoError(f.t, err)
	f.content(files, want)
}

func (f *folder) content(files []File, want []string) {
	f.t.Helper()
	var got []string
	for _, one := range files {
		name, err := filepath.Rel(f.dir, one.Path)
		require.NoError(f.t, err)
		got = append(got, name+"="+string(one.Data))
	}
	require.Equal(f.t, want, got)
}

// quiet requires that polls report nothing.
func (f *folder) quiet() {
	f.t.Helper()
	for range 3 {
		_, changed, err := f.w.Poll()
		require.NoError(f.t, err)
		require.False(f.t, changed)
	}
}

// changes requires that the second poll reports a content, and that further polls report nothing.
func (f *folder) changes(want ...string) {
	f.t.Helper()
	_, changed, _ := f.w.Poll()
	require.False(f.t, changed, "one reading may have met a half-written file")
	files, changed, err := f.w.Poll()
	require.NoError(f.t, err)
	require.True(f.t, changed)
	f.content(files, want)
	f.quiet()
}

// fails requires that the second poll reports an error, and that further polls do not repeat it.
func (f *folder) fails(says string) {
	f.t.Helper()
	_, changed, _ := f.w.Poll()
	require.False(f.t, changed)
	files, changed, err := f.w.Poll()
	require.True(f.t, changed)
	require.ErrorContains(f.t, err, says)
	require.Empty(f.t, files)
	f.quiet()
}

// TestWaysToChangeAFile checks that each way of changing a file is noticed once.
func TestWaysToChangeAFile(t *testing.T) {
	f := newFolder(t)
	f.write("p.yaml", "one")
	f.watch("p.yaml", "p.yaml=one")
	f.quiet()

	f.write("p.yaml", "two") // in place, same length
	f.changes("p.yaml=two")

	f.write("new", "six")
	require.NoError(t, os.Rename(f.path("new"), f.path("p.yaml")))
	f.changes("p.yaml=six")

	f.write("new", "ten") // the old time, as a copy that keeps times has it
	require.NoError(t, os.Chtimes(f.path("new"), f.clock.Add(-time.Second), f.clock.Add(-time.Second)))
	require.NoError(t, os.Rename(f.path("new"), f.path("p.yaml")))
	f.changes("p.yaml=ten")

	f.write("p.yaml", "ten")
	f.quiet() // only its time has changed

	require.NoError(t, os.Remove(f.path("p.yaml")))
	f.fails("no such file")
	f.write("p.yaml", "ten")
	f.changes("p.yaml=ten")
}

// TestAHalfWrittenFile checks that a file is not reported while it grows. A content that ends before it is stable is
// never reported.
func TestAHalfWrittenFile(t *testing.T) {
	f := newFolder(t)
	f.write("p.yaml", "whole")
	f.watch("p.yaml", "p.yaml=whole")
	for _, part := range []string{"", "par", "part", "party", "whole"} {
		f.write("p.yaml", part)
		_, changed, err := f.w.Poll()
		require.NoError(t, err)
		require.False(t, changed, part)
	}
	f.quiet()
}

// TestAWriteDuringTheFirstReading checks that a write at the same file time as that of the first reading is noticed.
func TestAWriteDuringTheFirstReading(t *testing.T) {
	f := newFolder(t)
	f.write("p.yaml", "one")
	f.watch("p.yaml", "p.yaml=one")
	at := f.clock
	f.write("p.yaml", "two")
	require.NoError(t, os.Chtimes(f.path("p.yaml"), at, at))
	f.changes("p.yaml=two")
}

// TestConfigMap checks the links by which Kubernetes changes all files of a mounted ConfigMap at once.
func TestConfigMap(t *testing.T) {
	f := newFolder(t)
	mount := func(version string, files map[string]string) {
		require.NoError(t, os.Mkdir(f.path(version), 0o700))
		for name, text := range files {
			f.write(version+"/"+name, text)
		}
		require.NoError(t, os.Symlink(version, f.path("..data_tmp")))
		require.NoError(t, os.Rename(f.path("..data_tmp"), f.path("..data")))
	}
	mount("..2026_1", map[string]string{"a.yaml": "a1", "b.yml": "b1", "README": "no"})
	for _, name := range []string{"a.yaml", "b.yml", "README"} {
		require.NoError(t, os.Symlink("..data/"+name, f.path(name)))
	}
	f.watch("", "a.yaml=a1", "b.yml=b1")
	f.quiet()
	one := New(100, f.path("b.yml"))
	_, err := one.Read()
	require.NoError(t, err)

	mount("..2026_2", map[string]string{"a.yaml": "a1", "b.yml": "b2", "README": "no"})
	require.NoError(t, os.RemoveAll(f.path("..2026_1")))
	f.changes("a.yaml=a1", "b.yml=b2")
	f.w = one
	f.changes("b.yml=b2")
}

// TestFilesOfADirectory checks which files of a directory count, and that those that come and go are noticed.
func TestFilesOfADirectory(t *testing.T) {
	f := newFolder(t)
	_, err := New(100, f.dir).Read()
	require.ErrorContains(t, err, "the directory has no file whose name ends in .yaml or .yml")
	f.write("b.yaml", "b")
	f.write(".hidden.yaml", "no")
	f.write("notes.txt", "no")
	f.watch("", "b.yaml=b")
	f.write("a.yml", "a")
	f.changes("a.yml=a", "b.yaml=b")
	require.NoError(t, os.Rename(f.path("b.yaml"), f.path("c.yaml")))
	f.changes("a.yml=a", "c.yaml=b")
	require.NoError(t, os.Mkdir(f.path("d.yaml"), 0o700))
	f.fails("d.yaml is not a regular file")
	require.NoError(t, os.Remove(f.path("d.yaml")))
	f.changes("a.yml=a", "c.yaml=b")

	f.write("d.yaml", string(make([]byte, 98)))
	f.w.Poll()
	_, changed, err := f.w.Poll()
	require.True(t, changed)
	require.NoError(t, err, "100 bytes are allowed")
	f.write("d.yaml", string(make([]byte, 99)))
	f.fails("longer than 100 bytes")
}

// TestErrorsThatEnd checks that the end of an error is noticed although the system says the same about the file.
func TestErrorsThatEnd(t *testing.T) {
	f := newFolder(t)
	f.write("p.yaml", "one")
	f.watch("p.yaml", "p.yaml=one")
	f.quiet()
	open := f.w.open
	f.w.open = func(string) (io.ReadCloser, error) { return nil, errors.New("too many open files") }
	f.write("p.yaml", "two")
	f.fails("too many open files")
	f.w.open = open
	f.changes("p.yaml=two")
}

// TestSeveralPaths checks that files and directories are read in their order, and watched together.
func TestSeveralPaths(t *testing.T) {
	f := newFolder(t)
	require.NoError(t, os.Mkdir(f.path("in"), 0o700))
	for _, name := range []string{"z.conf", "in/b.yaml", "in/a.yaml", "p.yaml"} {
		f.write(name, name)
	}
	f.w = New(100, f.path("z.conf"), f.path("in"), f.path("p.yaml"))
	files, err := f.w.Read()
	require.NoError(t, err)
	f.content(files, []string{"z.conf=z.conf", "in/a.yaml=in/a.yaml", "in/b.yaml=in/b.yaml", "p.yaml=p.yaml"})
	f.write("in/b.yaml", "")
	f.changes("z.conf=z.conf", "in/a.yaml=in/a.yaml", "in/b.yaml=", "p.yaml=p.yaml")
}

// TestAPipeIsReadOnce checks that a path that can be read only once is not polled.
func TestAPipeIsReadOnce(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString("one")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	watcher := New(100, "/dev/fd/"+fmt.Sprint(r.Fd()))
	files, err := watcher.Read()
	require.NoError(t, err)
	require.Equal(t, "one", string(files[0].Data))
	for range 3 {
		_, changed, err := watcher.Poll()
		require.NoError(t, err)
		require.False(t, changed)
	}
}
