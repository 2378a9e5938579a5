package persistence

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// Format 1 kept each entry under a key of its own, and the clock record or the image record under another key. The
// entries of such a store are read as the beginning of a journal. The first rewrite pass replaces them.
const (
	legacyEntry = 'e'
	legacyMeta  = 'm'
)

// legacyRecords holds the keys of records in format 1.
var legacyRecords = map[byte][]byte{
	clockRecord: {legacyMeta, 'c'},
	imageRecord: {legacyMeta, 'i'},
}

// readLegacyRecord returns the record of a store in format 1, or nil if it has none.
func readLegacyRecord(db *pebble.DB, kind byte) ([]byte, error) {
	value, closer, err := db.Get(legacyRecords[kind])
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), closer.Close()
}

// hasLegacy reports whether data in format 1 remains. Such data always has a clock record or an image record.
func hasLegacy(db *pebble.DB) (bool, error) {
	iter, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{legacyMeta}, UpperBound: []byte{legacyMeta + 1}})
	if err != nil {
		return false, err
	}
	return iter.First(), iter.Close()
}

// readLegacy passes the entries in format 1 to hand, as blocks of one change.
func (j *journal) readLegacy(hand func(kind byte, block []byte) error) error {
	if !j.legacy {
		return nil
	}
	iter, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{legacyEntry}, UpperBound: []byte{legacyEntry + 1}})
	if err != nil {
		return err
	}
	for iter.First(); iter.Valid(); iter.Next() {
		value, err := iter.ValueAndErr()
		if err == nil {
			c := engine.Change{Key: iter.Key()[1:], Value: value}
			j.bytes += int64(len(c.Key) + len(c.Value))
			var one block
			one.add(c)
			err = hand(shortBlock|keyLane(c.Key), one.bytes)
		}
		if err != nil {
			return errors.Join(err, iter.Close())
		}
	}
	return iter.Close()
}

// keyLane returns the lane of a key. Up to format 5, it got the whole key of a change.
func keyLane(key []byte) byte { return byte(crc32.Checksum(key, castagnoli) % laneCount) }

func dropLegacy(b *pebble.Batch) error {
	return errors.Join(
		b.DeleteRange([]byte{legacyEntry}, []byte{legacyEntry + 1}, nil),
		b.DeleteRange([]byte{legacyMeta}, []byte{legacyMeta + 1}, nil))
}

// cutChange decodes the first change of a block in formats 2 and 3, in which each change has its whole key and value.
// It returns false for a malformed change:
//
//	change = keyLen key valueLen+1 value
//	       | keyLen key 0                  a deleted entry
func cutChange(b []byte) (c engine.Change, rest []byte, ok bool) {
	if c.Key, b, ok = cutBytes(b, 0); !ok {
		return c, nil, false
	}
	c.Value, b, ok = cutBytes(b, 1)
	return c, b, ok
}

// cutBytes decodes a number and the bytes that follow it in b. The number is the length of the bytes plus more. If it
// is below more, cut is nil.
func cutBytes(b []byte, more uint64) (cut, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > more+uint64(len(b)-size) {
		return nil, nil, false
	}
	if b = b[size:]; n < more {
		return nil, b, true
	}
	return b[:n-more], b[n-more:], true
}
