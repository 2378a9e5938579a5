package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine"
)

// Oldest and Version are the formats of entries that this package writes and reads. A
// node stops at an entry of a newer one.
//
// Format 2 has policies with strikes and the script of redis-gcra, format 3 blocks
// everywhere, format 4 owners and conditional changes of policies; see FormatOf.
//
// Format 5 has
//   - the address that a decision comes from,
//   - attempts, delays and forgiveness of strikes,
//   - layouts and REPORT of policies, and the reset of all limits of a policy for a key,
//   - byte strings (SET and scripts that compare and swap),
//   - scripts that keep hashes,
//   - the script that keeps a sliding log.
const Oldest, Version = 1, 5

// HeaderLen is the length of an encoded header.
const HeaderLen = 2 + 6*8

// Errors of this package.
var (
	// ErrMalformed: the bytes are not what this package writes.
	ErrMalformed = errors.New("malformed entry")
	// ErrVersion: the bytes were written by a newer version of weir.
	ErrVersion = errors.New("written by a newer version of weir")
)

// Kind says what an entry does.
type Kind uint8

// The kinds of entries.
const (
	Decide    Kind = iota // carry out the operations of the body
	Tick                  // only bring limiter time forward
	Clear                 // forget everything
	Bootstrap             // the first entry of a cluster: what all nodes must agree on
	numKinds
)

// Header opens an entry.
type Header struct {
	Kind Kind
	// Format is that of the entry; 0 means Oldest.
	Format byte
	// Term is the term for which the proposer's clock holds. An entry that ends up in
	// another term is not applied: its time may be ahead of that term's.
	Term uint64
	// Nonce tells the proposer which of its batches an entry is. Unique among the
	// entries in flight on all nodes.
	Nonce uint64
	At    engine.Stamp
	// CheckIndex and CheckHash are a log index that the proposer had applied and the
	// hash of its history up to there; 0 for none. Every node compares.
	CheckIndex, CheckHash uint64
}

// Put writes the header over the first HeaderLen bytes of b.
func (h Header) Put(b []byte) {
	b[0], b[1] = cmp.Or(h.Format, Oldest), byte(h.Kind)
	for i, v := range [...]uint64{h.Term, h.Nonce, uint64(h.At.NowNs), uint64(h.At.WallOffsetNs), h.CheckIndex,
		h.CheckHash} {
		binary.LittleEndian.PutUint64(b[2+8*i:], v)
	}
}

// Split returns the header and the body of an entry, for a reader that knows the formats
// up to newest.
func Split(b []byte, newest byte) (Header, []byte, error) {
	if len(b) > 0 && b[0] > newest {
		return Header{}, nil, fmt.Errorf("%w: entry format %d, this one reads %d", ErrVersion, b[0], newest)
	}
	if len(b) < HeaderLen || b[0] < Oldest || b[1] >= byte(numKinds) {
		return Header{}, nil, ErrMalformed
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(b[2+8*i:]) }
	return Header{
		Kind: Kind(b[1]), Format: b[0], Term: field(0), Nonce: field(1),
		At:         engine.Stamp{NowNs: int64(field(2)), WallOffsetNs: int64(field(3))},
		CheckIndex: field(4), CheckHash: field(5),
	}, b[HeaderLen:], nil
}
