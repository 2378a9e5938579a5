package wire

import (
	"encoding/binary"

	"github.com/weir-project/weir/engine"
)

// AppendDecisions appends the answers to a forwarded body.
func AppendDecisions(b []byte, out []engine.Decision) []byte {
	for i := range out {
		d := &out[i]
		b = append(b, byte(d.Status), d.Pair, d.Part)
		for _, v := range [...]int64{d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, d.Limit} {
			b = binary.AppendVarint(b, v)
		}
	}
	return b
}

// ReadDecisions fills out from what AppendDecisions wrote, which must be exactly
// as many.
func ReadDecisions(b []byte, out []engine.Decision) error {
	d := Decoder{b: b}
	for i := range out {
		out[i] = engine.Decision{
			Status: engine.Status(d.byte()), Pair: d.byte(), Part: d.byte(), Allowed: d.varint(), Remaining: d.varint(),
			RetryMs: d.varint(), ResetMs: d.varint(), Limit: d.varint(),
		}
	}
	if d.bad || len(d.b) > 0 {
		return ErrMalformed
	}
	return nil
}
