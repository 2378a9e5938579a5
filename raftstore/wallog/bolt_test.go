package wallog

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// writeMeta creates the metadata of this many sealed segments, and returns the path of the file.
func writeMeta(t *testing.T, segments int) string {
	t.Helper()
	var state types.PersistentState
	for i := range segments {
		state.Segments = append(state.Segments,
			types.SegmentInfo{ID: uint64(i), BaseIndex: uint64(i + 1), MaxIndex: uint64(i + 1), SealTime: time.Now()})
	}
	state.NextSegmentID = uint64(segments)
	dir := t.TempDir()
	m, err := openMeta(dir, state, map[string][]byte{"CurrentTerm": []byte("7")})
	require.NoError(t, err)
	require.NoError(t, m.Close())
	return filepath.Join(dir, metadb.FileName)
}

// changeBolt changes a metadata file like a program that does not know the checksum.
func changeBolt(t *testing.T, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(change))
	require.NoError(t, db.Close())
}

// TestMetadataWithoutTheirChecksum checks that metadata are refused whose last transaction wrote no right checksum.
func TestMetadataWithoutTheirChecksum(t *testing.T) {
	for name, change := range map[string]func(tx *bbolt.Tx) error{
		"of an earlier transaction": func(*bbolt.Tx) error { return nil },
		"none":                      func(tx *bbolt.Tx) error { return tx.DeleteBucket(sumBucket) },
		"of another length": func(tx *bbolt.Tx) error {
			return tx.Bucket(sumBucket).Put(sumKey, []byte("sum"))
		},
		"of other data": func(tx *bbolt.Tx) error {
			sum := binary.LittleEndian.AppendUint64(nil, uint64(tx.ID()))
			return tx.Bucket(sumBucket).Put(sumKey, append(sum, 1, 2, 3, 4))
		},
	} {
		path := writeMeta(t, 1)
		changeBolt(t, path, func(tx *bbolt.Tx) error {
			require.NoError(t, tx.Bucket(stableBucket).Put([]byte("CurrentTerm"), []byte("8")))
			return change(tx)
		})
		_, _, err := readMeta(filepath.Dir(path))
		require.ErrorContains(t, err, "checksum mismatch", name)
	}
}

// TestABucketIsMissing checks that metadata without a bucket are refused. Without term and vote a node might vote
// twice, and without segments it has lost its log.
func TestABucketIsMissing(t *testing.T) {
	for _, name := range [][]byte{metaBucket, stableBucket} {
		path := writeMeta(t, 1)
		changeBolt(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket(name) })
		_, _, err := readMeta(filepath.Dir(path))
		require.ErrorContains(t, err, "a bucket is missing", "%s", name)
	}
}

// TestDamagedNumbersInPages checks that any number in the head of a page or an element gives an error, or the
// complete contents. Reading must not panic.
func TestDamagedNumbersInPages(t *testing.T) {
	for _, segments := range []int{1, 50} { // a bucket inside the root page, and one on a page of its own
		path := writeMeta(t, segments)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		want, err := readBolt(whole)
		require.NoError(t, err)
		root, _, pageSize, err := boltRoot(whole)
		require.NoError(t, err)
		head := int(root) * pageSize
		elements := int(binary.NativeEndian.Uint16(whole[head+10:]))
		require.Equal(t, 3, elements)
		for at := head; at < head+boltPageHead+elements*boltElement+200; at++ {
			for _, v := range []byte{0, 1, 2, 4, 15, 16, 17, 64, 127, 128, 255} {
				b := append([]byte{}, whole...)
				if b[at] = v; v == whole[at] {
					continue
				}
				if got, err := readBolt(b); err == nil {
					require.Equal(t, want.sum(), got.sum(), "byte %d of page %d: %d", at-head, root, v)
				}
			}
		}
		for i := range elements {
			at := head + boltPageHead + i*boltElement
			for field, v := range map[int]uint32{0: 0, 12: boltPageHead - 1} {
				b := append([]byte{}, whole...)
				binary.NativeEndian.PutUint32(b[at+field:], v)
				_, err := readBolt(b)
				require.ErrorIs(t, err, errBolt, "field %d of element %d", field, i)
			}
		}
		for n := range len(whole) {
			if n%pageSize < 100 {
				_, err := readBolt(whole[:n])
				require.Error(t, err, "cut to %d bytes", n)
			}
		}
	}
}

func TestMetadataThatCannotBeWritten(t *testing.T) {
	_, err := openMeta(filepath.Join(t.TempDir(), "missing"), types.PersistentState{}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	whole := t.TempDir()
	_, err = openMeta(whole, types.PersistentState{}, map[string][]byte{"": []byte("bbolt takes no key of no bytes")})
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(whole, metadb.FileName))
	dir := t.TempDir() // a directory in place of the file
	require.NoError(t, os.MkdirAll(filepath.Join(dir, metadb.FileName, "in it"), 0o755))
	_, err = openMeta(dir, types.PersistentState{}, nil)
	require.Error(t, err)
	_, _, err = readMeta(dir)
	require.Error(t, err)
	require.NotErrorIs(t, err, types.ErrCorrupt, "an unreadable file must not count as corrupt")
}

// TestAListOfSegmentsThatIsNone checks that an invalid list of segments does not pass for an empty one.
func TestAListOfSegmentsThatIsNone(t *testing.T) {
	path := writeMeta(t, 1)
	changeBolt(t, path, func(tx *bbolt.Tx) error {
		require.NoError(t, tx.Bucket(metaBucket).Put(metaKey, []byte("{")))
		return seal(tx)
	})
	_, _, err := readMeta(filepath.Dir(path))
	require.ErrorIs(t, err, types.ErrCorrupt)
}

// TestTheSumOfTheMetadata checks that the checksum covers every byte of the metadata and its position.
func TestTheSumOfTheMetadata(t *testing.T) {
	of := func(meta, stable map[string][]byte) uint32 {
		return buckets{metadb.MetaBucket: meta, metadb.StableBucket: stable}.sum()
	}
	type values = map[string][]byte
	sums := map[uint32]string{}
	for name, sum := range map[string]uint32{
		"as it is":         of(values{"k": []byte("v")}, values{"t": []byte("7")}),
		"another value":    of(values{"k": []byte("w")}, values{"t": []byte("7")}),
		"another vote":     of(values{"k": []byte("v")}, values{"t": []byte("8")}),
		"another key":      of(values{"l": []byte("v")}, values{"t": []byte("7")}),
		"another border":   of(values{"kv": nil}, values{"t": []byte("7")}),
		"all in one":       of(values{"k": []byte("v"), "t": []byte("7")}, nil),
		"all in the other": of(nil, values{"k": []byte("v"), "t": []byte("7")}),
		"nothing":          of(nil, nil),
	} {
		require.Empty(t, sums[sum], name)
		sums[sum] = name
	}
	require.Equal(t, uint32(0xa4621cfc), of(values{"k": []byte("v")}, values{"t": []byte("7")}),
		"the checksum must equal that of earlier versions")
}
