package sim

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft-wal/types"
)

const metaName = "wal-meta.json"

// walMeta stores the log's metadata, and the term and the vote, in one small file that is replaced as a whole. The
// library's own store maps its file into memory, which a simulated disk cannot do.
type walMeta struct {
	on vfs.FS

	mu   sync.Mutex
	dir  string
	data walMetaData
}

type walMetaData struct {
	State  types.PersistentState
	Stable map[string][]byte
}

var _ types.MetaStore = (*walMeta)(nil)

// Load reads the metadata.
func (m *walMeta) Load(dir string) (types.PersistentState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dir, m.data = dir, walMetaData{Stable: map[string][]byte{}}
	f, err := m.on.Open(m.on.PathJoin(dir, metaName))
	if errors.Is(err, fs.ErrNotExist) {
		return m.data.State, nil
	} else if err != nil {
		return m.data.State, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return m.data.State, err
	}
	return m.data.State, json.Unmarshal(b, &m.data)
}

// CommitState replaces the log's metadata.
func (m *walMeta) CommitState(s types.PersistentState) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Segments = slices.Clone(s.Segments)
	next := m.data
	next.State = s
	return m.replace(next)
}

// GetStable returns a value, or nil.
func (m *walMeta) GetStable(key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.data.Stable[string(key)]), nil
}

// SetStable stores a value.
func (m *walMeta) SetStable(key, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := walMetaData{State: m.data.State, Stable: map[string][]byte{string(key): slices.Clone(value)}}
	for k, v := range m.data.Stable {
		if k != string(key) {
			next.Stable[k] = v
		}
	}
	return m.replace(next)
}

// replace writes a new file. The old content stays until the new file is complete.
func (m *walMeta) replace(next walMetaData) error {
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	path := m.on.PathJoin(m.dir, metaName)
	f, err := m.on.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := m.on.Rename(path+".tmp", path); err != nil {
		return err
	}
	if err := syncDir(m.on, m.dir); err != nil {
		return err
	}
	m.data = next
	return nil
}

// Close does nothing.
func (m *walMeta) Close() error { return nil }
