package wire

import (
	"encoding/binary"

	"github.com/weir-project/weir/engine"
)

// AppendDecisions appends the answers to a forwarded body. It then appends the index and the Locked bits of each answer
// that has such bits, unless a member reads only an older format, in which nobody expects them.
func AppendDecisions(b []byte, out []engine.Decision, format byte) []byte {
	for i := range out {
		d := &out[i]
		status := byte(d.Status)
		if d.Value != "" {
			status |= valueFollows
		}
		b = append(b, status, d.Pair, d.Part)
		for _, v := range [...]int64{d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, d.Limit} {
			b = binary.AppendVarint(b, v)
		}
		if d.Value != "" {
			b = append(binary.AppendUvarint(b, uint64(len(d.Value))), d.Value...)
		}
	}
	for i := range out {
		if locked := out[i].Locked; locked != 0 && format >= added {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(i)), uint64(locked))
		}
	}
	return b
}

// valueFollows is set in the status of an answer whose byte string follows the numbers. Only operations of
// format 11 have such answers.
const valueFollows = 0x80

// ReadDecisions fills out from the bytes that AppendDecisions wrote. They must hold exactly len(out) answers.
func ReadDecisions(b []byte, out []engine.Decision) error {
	d := Decoder{b: b}
	for i := range out {
		status := d.byte()
		out[i] = engine.Decision{
			Status: engine.Status(status &^ valueFollows), Pair: d.byte(), Part: d.byte(), Allowed: d.varint(),
			Remaining: d.varint(),
			RetryMs:   d.varint(), ResetMs: d.varint(), Limit: d.varint(),
		}
		if status&valueFollows != 0 {
			out[i].Value = string(d.bytes())
		}
	}
	for next := uint64(0); len(d.b) > 0 && !d.bad; {
		i, locked := d.uvarint(), d.uvarint()
		if d.bad = d.bad || i < next || i >= uint64(len(out)) || locked == 0 || locked >= 1<<engine.MaxPairs; !d.bad {
			out[i].Locked, next = uint16(locked), i+1
		}
	}
	if d.bad {
		return ErrMalformed
	}
	return nil
}
