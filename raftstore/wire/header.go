package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine"
)

// Oldest and Version are the oldest and the newest format of entries that this package writes and reads. A node stops
// at an entry of a newer format.
//
// Format 2 adds policies with strikes and the script of redis-gcra. Format 3 adds blocks everywhere. Format 4 adds
// owners of policies and conditional policy changes. FormatOf returns the format that an operation needs.
//
// Format 5 adds
//   - the client address of a decision,
//   - attempts, delays and forgiveness of strikes,
//   - layouts and REPORT of policies, and the reset of all limits of a policy for a key,
//   - byte strings (SET and scripts that compare and swap),
//   - scripts that keep hashes,
//   - the script that keeps a sliding log.
//
// Format 6 adds clusters of several Raft groups: the constants of such a group, and the slots that it owns.
//
// Formats 7 and 8 add no operation. From their first entries on, tables decide by engine.RulesWaits and by
// engine.RulesDefinitions.
//
// Format 9 adds what an operation with an ID, or of a lease, asks for.
//
// Format 10 adds the version of the policies and blocks everywhere that several groups share, and a block of one key
// beside a block everywhere of the same key.
//
// Format 11 adds no operation. A block everywhere of a network needs it. From its first entry on, tables decide by
// engine.RulesNetworks.
//
// Format 12 adds no operation. From its first entry on, tables decide by engine.RulesManyBlocks.
//
// Format 13 adds the binding of an ID in the group of a key, while the first group carries out the request.
const Oldest, Version = 1, 13

// Groups is the format of the first entry of a cluster with several Raft groups.
const Groups = 6

// waits, definitions, blocks, networks and manyBlocks are the formats whose entries tables decide by engine.RulesWaits,
// engine.RulesDefinitions, engine.RulesBlocks, engine.RulesNetworks and engine.RulesManyBlocks.
const (
	waits       = 7
	definitions = 8
	blocks      = 10
	networks    = 11
	manyBlocks  = 12
)

// HeaderLen is the length of an encoded header.
const HeaderLen = 2 + 6*8

// Errors of this package.
var (
	// ErrMalformed reports bytes that this package did not write.
	ErrMalformed = errors.New("malformed entry")
	// ErrVersion reports bytes that a newer version of weir wrote.
	ErrVersion = errors.New("written by a newer version of weir")
)

// Kind is the kind of an entry.
type Kind uint8

// The kinds of entries.
const (
	Decide    Kind = iota // decides the operations of the body
	Tick                  // advances limiter time, and records the leader's note of the wall clocks
	Clear                 // removes all limiters, blocks and remembered IDs
	Bootstrap             // the first entry of a cluster: the constants that all nodes must agree on
	numKinds
)

// Header is the header of an entry.
type Header struct {
	Kind Kind
	// Format is the format of the entry; 0 means Oldest.
	Format byte
	// Term is the term for which the proposer's clock is valid. The FSM does not apply an entry that the log holds
	// under another term, because its time may be ahead of that term's time.
	Term uint64
	// Nonce identifies the proposer's batch. It is unique among the entries in flight on all nodes.
	Nonce uint64
	At    engine.Stamp
	// CheckIndex is a log index that the proposer had applied, and CheckHash is the hash of its history up to that
	// index. Both are 0 if the entry has no check. Every node compares the hash with its own.
	CheckIndex, CheckHash uint64
}

// Put overwrites the first HeaderLen bytes of b with the header.
func (h Header) Put(b []byte) {
	b[0], b[1] = cmp.Or(h.Format, Oldest), byte(h.Kind)
	for i, v := range [...]uint64{h.Term, h.Nonce, uint64(h.At.NowNs), uint64(h.At.WallOffsetNs), h.CheckIndex,
		h.CheckHash} {
		binary.LittleEndian.PutUint64(b[2+8*i:], v)
	}
}

// Split returns the header and the body of an entry. It returns ErrVersion if the format of the entry is newer than
// newest.
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
