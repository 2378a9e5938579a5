package engine

import (
	"crypto/sha256"
	"encoding/binary"
)

// Fingerprint identifies what a request with an ID asks for, apart from its ID. Two requests that differ have different
// fingerprints. The time at which a request came, the address that it came from and the version of a policy are no
// part of it.
//
// The first byte is the command (see Command). A byte for each Difference follows, which tells where two requests
// differ. The rest is from SHA-256, because clients choose what they ask for: with a weak hash they could find a
// request that costs much and passes as the repetition of one that costs little. All members of a cluster and all
// versions of weir must compute the same fingerprint.
type Fingerprint [16]byte

// Difference is a set of parts in which two requests differ.
type Difference uint8

// The parts of a request.
const (
	OtherPairs   Difference = 1 << iota // its policies or its keys
	OtherLimit                          // its limit
	OtherCost                           // its cost, or the units of a refund
	OtherText                           // its holder or reason
	OtherTime                           // its ttl or duration
	OtherOptions                        // its other options
	numParts     = iota
)

// Bind sets Asks if a repetition of the operation must be told from another request: the operation has an ID or takes
// a lease. The record of a hold has its own terms.
func (op *Op) Bind() {
	switch {
	case len(op.ID) > 0 && op.Code != OpReserve:
		op.Asks = op.Fingerprint()
	case op.Code == OpTake && op.Limit.Algorithm == Concurrency:
		op.Asks = Fingerprint{op.command()}
	}
}

// Fingerprint returns the fingerprint of an operation. It is never zero.
func (op *Op) Fingerprint() (f Fingerprint) {
	var room [512]byte
	b, ends := append(room[:0], op.command()), [numParts]int{}
	named := op.Code == OpCheck || op.Code == OpForgive || op.Code == OpCharge
	if named {
		b = appendText(b, op.Text)
	}
	b = appendText(b, op.Key)
	for _, p := range op.Also {
		b = appendText(appendText(b, p.Policy), p.Key)
	}
	if op.Else != 0 {
		b = binary.AppendUvarint(b, uint64(op.Else&^Split))
	}
	ends[0] = len(b)
	if op.Code == OpTake {
		b = op.Limit.Append(b)
	}
	if op.Calendar != nil {
		b = appendText(b, []byte(op.Calendar.Zone))
	}
	ends[1] = len(b)
	b = binary.AppendVarint(b, op.Cost)
	ends[2] = len(b)
	if !named {
		b = appendText(b, op.Text)
	}
	ends[3] = len(b)
	b = binary.AppendVarint(b, op.TTLNs)
	ends[4] = len(b)
	b = binary.AppendVarint(b, op.WaitNs)
	if op.decides() && op.Partial { // else Partial tells what the user may do
		b = append(b, 1)
	}
	if op.High {
		b = append(b, 2)
	}
	if op.Else.Split() {
		b = append(b, 4)
	}
	if op.Keep {
		b = append(b, 8)
	}
	ends[5] = len(b)

	f[0] = b[0]
	from := 1
	for i, end := range ends {
		f[1+i], from = tag(b[from:end]), end
	}
	// The lengths of the parts make the digest unambiguous.
	for _, end := range ends {
		b = binary.AppendUvarint(b, uint64(end))
	}
	digest := sha256.Sum256(b)
	copy(f[1+numParts:], digest[:])
	return f
}

func appendText(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// tag is the FNV-1a hash, folded to a byte.
func tag(b []byte) byte {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return byte(h ^ h>>8 ^ h>>16 ^ h>>24)
}

// ofTake marks the command of a decision under a limit. The other bits are the algorithm.
const ofTake = 0x80

func (op *Op) command() byte {
	if op.Code == OpTake {
		return ofTake | byte(op.Limit.Algorithm)
	}
	return byte(op.Code)
}

// otherTerms is the answer to a request whose ID was used for another request.
func otherTerms(first, now Fingerprint) Decision {
	d := Decision{Status: OtherTerms, Limit: int64(first[0])}
	for i := range numParts {
		if first[1+i] != now[1+i] {
			d.Remaining |= 1 << i
		}
	}
	return d
}

// otherLease is the answer to a holder that asks for another cost than it has leased.
func otherLease(units int64) Decision { return Decision{Status: OtherTerms, Remaining: units} }

// LeasedUnits returns how many units the holder of an operation has leased, if the status is OtherTerms because the
// operation asks for another number. Otherwise it returns 0.
func (d *Decision) LeasedUnits() int64 {
	if d.Limit != 0 {
		return 0
	}
	return d.Remaining
}

// FirstUse returns what the status OtherTerms says about the ID of an operation: the command that the ID was used for,
// and where that request differs. A difference may be missing from the set.
func (d *Decision) FirstUse() (code OpCode, algorithm Algorithm, differs Difference) {
	if d.Limit&ofTake != 0 {
		return OpTake, Algorithm(d.Limit &^ ofTake), Difference(d.Remaining)
	}
	return OpCode(d.Limit), NoAlgorithm, Difference(d.Remaining)
}
