package wallog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
)

// bbolt does not verify its pages: a damaged page makes it panic, loop, or return the previous transaction. So the
// functions below read and verify the metadata without bbolt, and bbolt opens only a new copy of them (openMeta). The
// metadata are so small that each bucket is one leaf page, or is inline in the root page.
const (
	boltPageHead = 16
	boltMetaHead = 56 // bytes of a meta page before its checksum
	boltElement  = 16
	boltMagic    = 0xED0CDAED
	boltLeaf     = 2
	boltIsBucket = 1
)

var errBolt = errors.New("a page is invalid")

// buckets holds the metadata by bucket and key.
type buckets map[string]map[string][]byte

// sum returns the checksum of the library's metadata and of term and vote.
func (m buckets) sum() uint32 {
	sum := crc32.New(castagnoli)
	for _, name := range []string{metadb.MetaBucket, metadb.StableBucket} {
		for _, key := range slices.Sorted(maps.Keys(m[name])) {
			value := m[name][key]
			_ = binary.Write(sum, binary.LittleEndian, [2]uint32{uint32(len(key)), uint32(len(value))})
			sum.Write([]byte(key))
			sum.Write(value)
		}
		sum.Write([]byte(name))
	}
	return sum.Sum32()
}

// readMeta reads and verifies the metadata without changing anything. It returns no error if the file does not exist,
// because the log is new.
func readMeta(dir string) (state types.PersistentState, stable map[string][]byte, err error) {
	b, err := os.ReadFile(filepath.Join(dir, metadb.FileName))
	if errors.Is(err, os.ErrNotExist) {
		return state, nil, nil
	} else if err != nil {
		return state, nil, err
	}
	all, err := readBolt(b)
	if err != nil {
		return state, nil, &CorruptError{File: metadb.FileName,
			Reason: err.Error() + ": the file lists the log's segments and holds this node's vote"}
	}
	if raw := all[metadb.MetaBucket][metadb.MetaKey]; raw != nil {
		if err := json.Unmarshal(raw, &state); err != nil {
			return state, nil, &CorruptError{File: metadb.FileName, Reason: err.Error()}
		}
	}
	return state, all[metadb.StableBucket], nil
}

// readBolt returns the content of a bbolt file. It verifies the checksum of the last transaction.
func readBolt(b []byte) (buckets, error) {
	root, txid, pageSize, err := boltRoot(b)
	if err != nil {
		return nil, err
	}
	page := func(id uint64) []byte {
		if id > uint64(len(b)/pageSize) {
			return nil
		}
		return b[int(id)*pageSize:]
	}
	all := buckets{}
	err = eachBolt(page(root), func(flags uint32, name, value []byte) error {
		if flags != boltIsBucket || len(value) < boltPageHead {
			return errBolt
		}
		in := value[boltPageHead:] // the bucket's page is inline unless it has a page number
		if id := binary.NativeEndian.Uint64(value); id != 0 {
			in = page(id)
		}
		values := map[string][]byte{}
		all[string(name)] = values
		return eachBolt(in, func(_ uint32, k, v []byte) error {
			values[string(k)] = slices.Clone(v)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if all[metadb.MetaBucket] == nil || all[metadb.StableBucket] == nil {
		return nil, errors.New("a bucket is missing")
	}
	sum := all[string(sumBucket)][string(sumKey)]
	if len(sum) != sumBytes || binary.LittleEndian.Uint64(sum) != txid ||
		binary.LittleEndian.Uint32(sum[8:]) != all.sum() {
		return nil, errors.New("checksum mismatch")
	}
	return all, nil
}

// boltRoot verifies both meta pages of a file, and its length. bbolt accepts a file with one valid meta page: if the
// newer one were damaged, bbolt would forget a vote. A crash damages neither meta page, because the used part of each
// lies within one sector.
func boltRoot(b []byte) (root, txid uint64, pageSize int, err error) {
	pages := uint64(0)
	for i := range 2 {
		if len(b) < i*pageSize+boltPageHead+boltMetaHead+8 {
			return 0, 0, 0, errors.New("the file is too short")
		}
		head := b[i*pageSize+boltPageHead:]
		sum := fnv.New64a()
		sum.Write(head[:boltMetaHead])
		if binary.NativeEndian.Uint32(head) != boltMagic ||
			binary.NativeEndian.Uint64(head[boltMetaHead:]) != sum.Sum64() {
			return 0, 0, 0, fmt.Errorf("checksum mismatch in page %d", i)
		}
		pageSize = int(binary.NativeEndian.Uint32(head[8:]))
		if id := binary.NativeEndian.Uint64(head[48:]); i == 0 || id > txid {
			root, txid = binary.NativeEndian.Uint64(head[16:]), id
		}
		pages = max(pages, binary.NativeEndian.Uint64(head[40:]))
	}
	if uint64(len(b)/pageSize) < pages {
		return 0, 0, 0, errors.New("the file is too short")
	}
	return root, txid, pageSize, nil
}

// eachBolt visits the elements of the leaf page at the start of b.
func eachBolt(b []byte, visit func(flags uint32, key, value []byte) error) error {
	if len(b) < boltPageHead || binary.NativeEndian.Uint16(b[8:]) != boltLeaf {
		return errBolt
	}
	for i := range int(binary.NativeEndian.Uint16(b[10:])) {
		at := boltPageHead + i*boltElement
		if at+boltElement > len(b) {
			return errBolt
		}
		u32 := func(n int) int { return int(binary.NativeEndian.Uint32(b[at+4*n:])) }
		key, value := at+u32(1), at+u32(1)+u32(2)
		if value+u32(3) > len(b) {
			return errBolt
		}
		if err := visit(uint32(u32(0)), b[key:value], b[value:value+u32(3)]); err != nil {
			return err
		}
	}
	return nil
}
