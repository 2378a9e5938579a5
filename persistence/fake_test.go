package persistence

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// fakeTable is a table of opaque entries. A load skips the value "idle" and refuses the value "bad".
type fakeTable struct {
	mu      sync.Mutex
	entries map[string]string
	dirty   map[string]bool

	loadedAt engine.Stamp // of the last Load
}

// Reserve does nothing, because the fake prepares nothing.
func (t *fakeTable) Reserve(int64) {}

func newFakeTable() *fakeTable {
	return &fakeTable{entries: map[string]string{}, dirty: map[string]bool{}}
}

func (f *fakeTable) set(key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries[key], f.dirty[key] = value, true
}

func (f *fakeTable) remove(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.entries, key)
	f.dirty[key] = true
}

func (f *fakeTable) state() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.entries)
}

func (f *fakeTable) Drain(maxChunk int, emit func([]engine.Change) error) error {
	f.mu.Lock()
	keys := slices.Sorted(maps.Keys(f.dirty))
	f.dirty = map[string]bool{}
	var changes []engine.Change
	for _, k := range keys {
		c := engine.Change{Key: []byte(k)}
		if v, ok := f.entries[k]; ok {
			c.Value = []byte(v)
		}
		changes = append(changes, c)
	}
	f.mu.Unlock()
	for chunk := range slices.Chunk(changes, maxChunk) {
		if err := emit(chunk); err != nil {
			return err
		}
	}
	return nil
}

// Renew visits the entries in the order of a hash.
func (f *fakeTable) Renew(cursor uint64, entries int) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash := func(k string) uint64 { return uint64(crc32.Checksum([]byte(k), castagnoli)) + 1 }
	keys := slices.SortedFunc(maps.Keys(f.entries), func(a, b string) int { return cmp.Compare(hash(a), hash(b)) })
	for _, k := range keys {
		switch h := hash(k); {
		case h < cursor:
		case entries <= 0:
			return h
		default:
			f.dirty[k] = true
			entries--
		}
	}
	return 0
}

func (f *fakeTable) Usage() (entries, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, v := range f.entries {
		bytes += int64(len(k) + len(v))
	}
	return int64(len(f.entries)), bytes
}

var errBadEntry = errors.New("no such algorithm")

func (f *fakeTable) Load(at engine.Stamp, changes []engine.Change) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loadedAt = at
	for i, c := range changes {
		switch key := string(c.Key); {
		case string(c.Value) == "bad":
			return i, errBadEntry
		case c.Value == nil, string(c.Value) == "idle":
			delete(f.entries, key)
		default:
			f.entries[key] = string(c.Value)
		}
	}
	return 0, nil
}

// fakeSource is a Source whose clocks the test controls.
type fakeSource struct {
	mu           sync.Mutex
	monoNs, wall int64
}

func (s *fakeSource) MonotonicNs() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.monoNs
}

func (s *fakeSource) WallNs() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wall
}

// pass advances both clocks by d, as when real time passes.
func (s *fakeSource) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.monoNs += int64(d)
	s.wall += int64(d)
}

// step moves the wall clock by d, and not the monotonic clock.
func (s *fakeSource) step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall += int64(d)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// mustNotStop returns an OnFatal that panics. If it returned, a test that waits for the store would wait for ever.
func mustNotStop(t *testing.T) func(error) {
	return func(err error) { panic(fmt.Sprintf("%s: the store stops the process: %v", t.Name(), err)) }
}

// busyRenewal makes rewrite passes follow each other without a break.
var busyRenewal = renewal{spareBytes: 100, entries: 7}

const dataDir = "data"

// at returns the clock record of a flush in tests that do not depend on time.
func at() Record { return Record{LimiterNs: 1e18, WallNs: 1e18} }

// openStore opens a store on fs, loads it into a new table, and begins.
func openStore(fs vfs.FS, dir string, onFatal func(error)) (*Store, *fakeTable, error) {
	s, err := OpenStore(StoreOptions{Dir: dir, FS: fs, Logger: quiet, OnFatal: onFatal, renewal: busyRenewal})
	if err != nil {
		return nil, nil, err
	}
	table := newFakeTable()
	err = s.Load(engine.Stamp{NowNs: 1e18}, table)
	if err == nil {
		err = s.Begin(at())
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.abandon())
	}
	return s, table, nil
}

func mustOpen(t *testing.T, fs vfs.FS, dir string) (*Store, *fakeTable) {
	t.Helper()
	s, table, err := openStore(fs, dir, mustNotStop(t))
	require.NoError(t, err)
	return s, table
}

func flush(t *testing.T, s *Store, table *fakeTable) {
	t.Helper()
	require.NoError(t, s.Flush(table, at, true))
}

// readFile reads a file of a data directory.
func readFile(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return b
}

func writeFile(t *testing.T, fs vfs.FS, path string, content []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = io.Copy(f, bytes.NewReader(content))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// files lists the paths of the files below a directory.
func files(t *testing.T, fs vfs.FS, dir string) []string {
	t.Helper()
	names, err := fs.List(dir)
	require.NoError(t, err)
	var paths []string
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			paths = append(paths, files(t, fs, path)...)
		} else if !strings.HasSuffix(name, "LOCK") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
