package sharedlog

import (
	"encoding/binary"
	"errors"

	"github.com/hashicorp/raft"
)

// kind is the kind of a record. The values are part of the format of the log.
type kind byte

const (
	kindEntry  kind = iota + 1 // an entry of a part; a later record of the same entry replaces it
	kindStable                 // a value of the StableStore
	kindCut                    // the entries from an index on are removed
	kindLow                    // the entries before an index are removed
	kindDrop                   // the part has ended, and all its earlier records are removed
)

// record describes a record. In the Base it is a Raft entry whose Extensions begin with a header. The header holds the
// kind, the part and the index or the key. Term, type, data and time of an entry are in the fields of the Raft entry,
// so that they are not copied.
type record struct {
	kind  kind
	part  uint32
	index uint64 // of kindEntry, kindCut and kindLow
	key   []byte // of kindStable
	rest  []byte // of kindEntry: the Extensions of the entry
}

var errRecord = errors.New("the record is not one of a shared log, or a newer weir wrote it")

// appendHeader appends the header of a record to b.
func (r record) appendHeader(b []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(r.kind)), uint64(r.part))
	switch r.kind {
	case kindEntry:
		return append(binary.AppendUvarint(b, r.index), r.rest...)
	case kindStable:
		return append(b, r.key...)
	default:
		return binary.AppendUvarint(b, r.index)
	}
}

// decodeHeader decodes the header of a record. The result shares b.
func decodeHeader(b []byte) (r record, err error) {
	if len(b) == 0 {
		return r, errRecord
	}
	r.kind, b = kind(b[0]), b[1:]
	part, n := binary.Uvarint(b)
	if n <= 0 || r.kind < kindEntry || r.kind > kindDrop || part == 0 || part > 1<<32-1 {
		return r, errRecord
	}
	r.part, b = uint32(part), b[n:]
	if r.kind == kindStable {
		r.key = b
		return r, nil
	}
	if r.index, n = binary.Uvarint(b); n <= 0 {
		return r, errRecord
	}
	if r.rest = b[n:]; len(r.rest) == 0 {
		r.rest = nil
	}
	return r, nil
}

// recordOverhead is about what a record takes besides its data and extensions: frames, lengths and the time.
const recordOverhead = 48

// bytesOf returns about the size of a record in the Base.
func bytesOf(l *raft.Log) int64 { return int64(len(l.Data) + len(l.Extensions) + recordOverhead) }
