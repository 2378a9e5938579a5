package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine"
)

// Oldest and Version are the oldest and the newest format of entries that this package writes. A node stops at an entry
// of a newer format.
//
// Oldest is the newest format that weir 0.1.0 reads. Format 11 adds
//   - the client address of a decision,
//   - attempts, delays and forgiveness of strikes,
//   - layouts and REPORT of policies, and the reset of all limits of a policy for a key,
//   - byte strings (SET and scripts that compare and swap),
//   - scripts that keep hashes, and the script that keeps a sliding log,
//   - clusters of several Raft groups: the constants of such a group, and the slots that it owns,
//   - what an operation with an ID, or of a lease, asks for,
//   - the version of the policies and blocks everywhere that several groups share,
//   - a block of one key beside a block everywhere of the same key, and a block everywhere of a network.
//
// Format 12 adds no operation. Format 13 adds the binding of an ID in the group of a key, while the first group carries
// out the request. Format 14 adds the extension of a hold, a hold that keeps its units, the report of what was used
// so far, requests with alternatives, more holds on a limiter, NOTIFY and RECORD of policies, the event of a hold that
// ends by itself, units that are taken although they do not fit, and databases other than 0. RulesOf returns the rules
// by which tables decide from the first entry of a format on.
const Oldest, Version = 4, 14

// first is the lowest format of an entry. Weir 0.1.0 writes the operations of Oldest in any format from first on.
const first = 1

// added is the format of what weir has added to the log since version 0.1.0, manyBlocks the format of the newest rules,
// binding the format of OpBind, and growing that of OpExtend, OpEnd, OpCharge, Keep, Else, databases and the
// scripts from MovingTake on.
const added, manyBlocks, binding, growing = 11, 12, 13, 14

// Growing is the format of the first entry that sets the bound of the events of a cluster.
const Growing = growing

// Groups is the format of the first entry of a cluster with several Raft groups.
const Groups = added

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
	// Format is the format of the entry, at least Oldest; 0 means Oldest.
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
	if len(b) < HeaderLen || b[0] < first || b[1] >= byte(numKinds) {
		return Header{}, nil, ErrMalformed
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(b[2+8*i:]) }
	return Header{
		Kind: Kind(b[1]), Format: max(b[0], Oldest), Term: field(0), Nonce: field(1),
		At:         engine.Stamp{NowNs: int64(field(2)), WallOffsetNs: int64(field(3))},
		CheckIndex: field(4), CheckHash: field(5),
	}, b[HeaderLen:], nil
}
