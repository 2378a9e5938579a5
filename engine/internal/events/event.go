package events

import (
	"encoding/binary"

	"github.com/weir-project/weir/engine/internal/codec"
)

// Kind is what an event reports. The log stores it, so a number never changes.
type Kind uint8

// The kinds of events.
const (
	Threshold Kind = iota + 1 // the used units of a limit reached a share of it
	Settled                   // a hold was committed or cancelled
	Lockout                   // strikes began the penalty of the last step
	Expired                   // a hold ended by itself
	lastKind  = Expired
)

var kindNames = [...]string{Threshold: "threshold", Settled: "settled", Lockout: "lockout", Expired: "expired"}

// String returns the name of the kind as replies spell it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Event is one event.
type Event struct {
	Cursor uint64 // its number in the log, from 1
	AtMs   int64  // Unix milliseconds of the decision; never less than of the event before
	Kind   Kind
	Policy string
	Key    string
	ID     string // the hold, or the idempotency key of the decision; empty: none
	// Share is the threshold that was reached, in percent of the limit. It is 0 for other kinds.
	Share int64
	// Amount is the units that the decision took, what counts as used of a hold that ended by itself, what a settled
	// hold cost beyond its earlier events (below 0 if it cost less than they say), or the strikes of a lockout.
	Amount int64
	Used   int64 // units of the limit that are used after the decision
	Limit  int64
	// Database is the database of Key and of the hold. It is not stored: the stored names have it.
	Database int
}

// maxText bounds each text of a stored event. It is longer than keys, names and IDs are.
const maxText = 1024

// append appends the stored form of an event, without its cursor: kind, five numbers as varints, and three texts after
// their lengths.
func (e *Event) append(b []byte) []byte {
	b = append(b, byte(e.Kind))
	for _, n := range [...]int64{e.AtMs, e.Share, e.Amount, e.Used, e.Limit} {
		b = binary.AppendVarint(b, n)
	}
	for _, text := range [...]string{e.Policy, e.Key, e.ID} {
		b = append(binary.AppendVarint(b, int64(len(text))), text...)
	}
	return b
}

// decode decodes the bytes that append wrote.
func decode(cursor uint64, b []byte) (e Event, ok bool) {
	d := codec.Decoder{B: b}
	e.Cursor, e.Kind = cursor, Kind(d.Byte())
	for _, n := range [...]*int64{&e.AtMs, &e.Share, &e.Amount, &e.Used, &e.Limit} {
		*n = d.Varint()
	}
	for _, text := range [...]*string{&e.Policy, &e.Key, &e.ID} {
		*text = string(d.Bytes(d.Within(0, maxText)))
	}
	return e, !d.Bad && len(d.B) == 0 && e.Kind >= Threshold && e.Kind <= lastKind
}
