package wire

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/weir-project/weir/engine"
)

// The flags of an operation.
const (
	flagPartial   = 1 << iota // or Keep, of an operation that cannot be partial: see keepFlag
	flagDry                   // or Keep, of OpBlock
	flagSameLimit             // the limit equals the limit that was encoded last
	flagCost                  // a cost other than 1 follows
	flagTimes                 // a wait and a time to live follow
	flagID
	flagText
	flagExtra // a byte of extra bits follows, and the extras that it names
)

// The extra bits of an operation.
const (
	extraCalendar = 1 << iota
	extraIncr
	extraHigh   // high priority; nothing follows
	extraPairs  // further pairs of a check
	extraPolicy // a change of a policy
	extraScript
	extraFrom // the client address of the operation
	extraAsks // the fingerprint of an operation with an ID
	numExtras = iota
)

// pairsDivided is set in the number of further pairs if Else follows them. Older versions refuse so many
// pairs.
const pairsDivided = engine.MaxPairs

// The bits of an increment.
const (
	incrSaturate = 1 << iota
	incrOnlyIfNew
	numIncrBits = iota
)

// The bits of a policy change.
const (
	changeReset = 1 << iota
	changeOwn
	changeIf      // the version follows
	numChangeBits = iota
)

// strikesShift is the position of Strikes in the mode byte of a limit.
const strikesShift = 4

// Encoder appends calls to the body of an entry.
type Encoder struct {
	last engine.Limit // the last limit in the body. The zero value equals no valid limit
}

// Reset begins a new body.
func (e *Encoder) Reset() { *e = Encoder{} }

// Call appends the operations of one call. The operations of an atomic call must be carried out in one step.
func (e *Encoder) Call(b []byte, ops []engine.Op, atomic bool) []byte {
	n := uint64(len(ops)) << 1
	if atomic {
		n |= 1
	}
	b = binary.AppendUvarint(b, n)
	for i := range ops {
		b = e.op(b, &ops[i])
	}
	return b
}

// Estimate returns the approximate length of an encoded operation.
func Estimate(op *engine.Op) int {
	n := 48 + len(op.Key) + len(op.ID) + len(op.Text) + len(op.From) + len(op.Limit.Steps)
	for _, p := range op.Also {
		n += 4 + len(p.Policy) + len(p.Key)
	}
	if op.Policy != nil && op.Policy.Terms != nil {
		n += len(op.Policy.Terms.Append(nil))
	}
	if op.Script != nil {
		n += engine.MaxScriptArgs*binary.MaxVarintLen64 + len(op.Script.Values[0]) + len(op.Script.Values[1])
	}
	return n
}

func (e *Encoder) op(b []byte, op *engine.Op) []byte {
	flags := e.flags(op)
	b = append(b, byte(op.Code), flags)
	b = appendBytes(b, op.Key)
	if op.Code == engine.OpTake && flags&flagSameLimit == 0 {
		b = appendLimit(b, &op.Limit)
		e.last = op.Limit
	}
	if flags&flagCost != 0 {
		b = binary.AppendVarint(b, op.Cost)
	}
	if flags&flagTimes != 0 {
		b = binary.AppendVarint(binary.AppendVarint(b, op.WaitNs), op.TTLNs)
	}
	if flags&flagID != 0 {
		b = appendBytes(b, op.ID)
	}
	if flags&flagText != 0 {
		b = appendBytes(b, op.Text)
	}
	if flags&flagExtra != 0 {
		b = appendExtra(b, op)
	}
	return b
}

func (e *Encoder) flags(op *engine.Op) (flags byte) {
	set := func(on bool, flag byte) {
		if on {
			flags |= flag
		}
	}
	set(op.Partial, flagPartial)
	set(op.Dry, flagDry)
	set(op.Keep, keepFlag(op.Code))
	set(op.Code == engine.OpTake && op.Limit == e.last, flagSameLimit)
	set(op.Cost != 1, flagCost)
	set(op.WaitNs != 0 || op.TTLNs != 0, flagTimes)
	set(len(op.ID) > 0, flagID)
	set(len(op.Text) > 0, flagText)
	set(op.Calendar != nil || op.Incr != nil || op.High || len(op.Also) > 0 || op.Policy != nil || op.Script != nil ||
		len(op.From) > 0 || bound(op), flagExtra)
	return flags
}

func appendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendLimit(b []byte, l *engine.Limit) []byte {
	b = append(b, byte(l.Algorithm), byte(l.Mode)|byte(l.Strikes)<<strikesShift)
	for _, v := range [...]int64{l.Rate.Units, l.Rate.PerNs, l.Max, l.WindowNs, int64(len(l.Steps))} {
		b = binary.AppendVarint(b, v)
	}
	return append(b, l.Steps...)
}

func appendExtra(b []byte, op *engine.Op) []byte {
	at := len(b)
	b = append(b, 0)
	if op.High {
		b[at] |= extraHigh
	}
	if c := op.Calendar; c != nil {
		b[at] |= extraCalendar
		b = binary.AppendVarint(binary.AppendVarint(b, c.EndNs), c.NextEndNs)
	}
	if i := op.Incr; i != nil {
		b[at] |= extraIncr
		var bits byte
		if i.Saturate {
			bits |= incrSaturate
		}
		if i.OnlyIfNew {
			bits |= incrOnlyIfNew
		}
		b = append(b, bits, byte(i.Expire))
		for _, v := range [...]int64{i.By, i.Lower, i.Upper, i.ExpireNs} {
			b = binary.AppendVarint(b, v)
		}
	}
	if len(op.Also) > 0 {
		b[at] |= extraPairs
		n := uint64(len(op.Also))
		if op.Else != 0 {
			n |= pairsDivided
		}
		b = binary.AppendUvarint(b, n)
		for _, p := range op.Also {
			b = appendBytes(appendBytes(b, p.Policy), p.Key)
		}
		if op.Else != 0 {
			b = binary.AppendUvarint(b, uint64(op.Else))
		}
	}
	if op.Policy != nil {
		b[at] |= extraPolicy
		b = appendChange(b, op.Policy)
	}
	if c := op.Script; c != nil {
		b[at] |= extraScript
		b = append(b, byte(c.ID))
		for _, a := range c.Args {
			// The significant bits of a small whole number are the highest, so the reversed bits make a short varint.
			b = binary.AppendUvarint(b, bits.Reverse64(math.Float64bits(a)))
		}
		for _, value := range c.Values[:c.ID.TextsOf()] {
			b = appendBytes(b, value)
		}
	}
	if len(op.From) > 0 {
		b[at] |= extraFrom
		b = appendBytes(b, op.From)
	}
	if bound(op) {
		b[at] |= extraAsks
		b = append(b, op.Asks[:]...)
	}
	return b
}

// appendChange appends a policy change. A change without terms has an empty slice in their place.
func appendChange(b []byte, c *engine.PolicyChange) []byte {
	var bits byte
	if c.Reset {
		bits |= changeReset
	}
	if c.Own {
		bits |= changeOwn
	}
	if c.If {
		bits |= changeIf
	}
	b = append(b, byte(c.Do), bits)
	if c.If {
		b = binary.AppendUvarint(b, c.Version)
	}
	if c.Terms == nil {
		return appendBytes(b, nil)
	}
	return appendBytes(b, c.Terms.Append(nil))
}
