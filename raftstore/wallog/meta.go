package wallog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"

	"github.com/weir-project/weir/persistence"
)

// metadata replaces the library's metadb.BoltMetaDB. Each transaction adds a checksum of all metadata, and of term
// and vote, because bbolt has none for its data.
type metadata struct {
	db *bbolt.DB
	// syncSegment syncs a completed segment; nil: each append was synced.
	syncSegment func(types.SegmentInfo) error
	sealed      uint64 // segments with smaller IDs are synced
}

var (
	metaBucket   = []byte(metadb.MetaBucket)
	metaKey      = []byte(metadb.MetaKey)
	stableBucket = []byte(metadb.StableBucket)
	sumBucket    = []byte("weir-sum")
	sumKey       = []byte("s")
)

const sumBytes = 12 // the transaction's ID, and the CRC32C of the data after it

// sumOf returns the checksum of all keys and values.
func sumOf(tx *bbolt.Tx) (uint32, error) {
	all := buckets{}
	for _, name := range [][]byte{metaBucket, stableBucket} {
		values := map[string][]byte{}
		err := tx.Bucket(name).ForEach(func(k, v []byte) error {
			values[string(k)] = v
			return nil
		})
		if err != nil {
			return 0, err
		}
		all[string(name)] = values
	}
	return all.sum(), nil
}

// update changes one value and the checksum.
func (m *metadata) update(bucket, key, value []byte) error {
	return m.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.Bucket(bucket).Put(key, value); err != nil {
			return err
		}
		return seal(tx)
	})
}

func seal(tx *bbolt.Tx) error {
	sum, err := sumOf(tx)
	if err != nil {
		return err
	}
	sums, err := tx.CreateBucketIfNotExists(sumBucket)
	if err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(tx.ID()))
	return sums.Put(sumKey, binary.LittleEndian.AppendUint32(b, sum))
}

// Load returns the list of segments.
func (m *metadata) Load(string) (types.PersistentState, error) {
	var state types.PersistentState
	err := m.db.View(func(tx *bbolt.Tx) error { return loadState(tx, &state) })
	return state, err
}

func loadState(tx *bbolt.Tx, state *types.PersistentState) error {
	if raw := tx.Bucket(metaBucket).Get(metaKey); raw != nil {
		return json.Unmarshal(raw, state)
	}
	return nil
}

// CommitState replaces the list of segments. It first syncs the segments that the list names as completed. A loss of
// power may then remove the end of the log, and never a part of its middle.
func (m *metadata) CommitState(state types.PersistentState) error {
	if err := m.syncSealed(state.Segments); err != nil {
		return err
	}
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return m.update(metaBucket, metaKey, b)
}

// syncSealed syncs the segments that were completed since its last call.
func (m *metadata) syncSealed(segments []types.SegmentInfo) error {
	for _, s := range segments {
		if s.SealTime.IsZero() || s.ID < m.sealed {
			continue
		}
		if m.syncSegment != nil {
			if err := m.syncSegment(s); err != nil {
				return err
			}
		}
		m.sealed = s.ID + 1
	}
	return nil
}

// GetStable returns a value that the Raft library has stored, or nil.
func (m *metadata) GetStable(key []byte) (value []byte, err error) {
	err = m.db.View(func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket(stableBucket).Get(key))
		return nil
	})
	return value, err
}

// SetStable stores a value of the Raft library.
func (m *metadata) SetStable(key, value []byte) error { return m.update(stableBucket, key, value) }

// Close closes the file.
func (m *metadata) Close() error { return m.db.Close() }

// openMeta writes the metadata that readMeta has verified into a new file, and opens it. Damage to pages that
// readMeta does not read, such as the freelist, is not copied.
func openMeta(dir string, state types.PersistentState, stable map[string][]byte) (*metadata, error) {
	path := filepath.Join(dir, metadb.FileName)
	if err := os.RemoveAll(path + ".tmp"); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path+".tmp", 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error { return fill(tx, state, stable) })
	if err = errors.Join(err, db.Sync(), db.Close()); err != nil {
		return nil, err
	}
	if err = errors.Join(os.Rename(path+".tmp", path), persistence.SyncDirectory(vfs.Default, dir)); err != nil {
		return nil, err
	}
	if db, err = bbolt.Open(path, 0o600, nil); err != nil {
		return nil, err
	}
	m := &metadata{db: db}
	for _, s := range state.Segments {
		if !s.SealTime.IsZero() {
			m.sealed = s.ID + 1
		}
	}
	return m, nil
}

func fill(tx *bbolt.Tx, state types.PersistentState, stable map[string][]byte) error {
	meta, err := tx.CreateBucketIfNotExists(metaBucket)
	if err != nil {
		return err
	}
	bucket, err := tx.CreateBucketIfNotExists(stableBucket)
	if err != nil {
		return err
	}
	b, err := json.Marshal(state)
	if state.NextSegmentID > 0 {
		err = errors.Join(err, meta.Put(metaKey, b))
	}
	for k, v := range stable {
		err = errors.Join(err, bucket.Put([]byte(k), v))
	}
	return errors.Join(err, seal(tx))
}
