package wire

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/weir-project/weir/engine"
)

// Call is the operations of one call, in their order.
type Call struct {
	Ops    []engine.Op
	Atomic bool
}

// Decoder reads the body of an entry. It reuses its memory from one body to the next.
type Decoder struct {
	// Checked tells that the bodies are of the log. The node that proposed an entry has checked its operations with
	// Valid, so the decoder does not.
	Checked bool

	b    []byte
	bad  bool
	last engine.Limit
	ops  []engine.Op
}

// Reset begins reading a body. The operations of earlier calls become invalid.
func (d *Decoder) Reset(body []byte) {
	d.b, d.bad, d.last = body, false, engine.Limit{}
	d.ops = d.ops[:0]
}

// Next returns the next call, or false at the end of the body. The operations refer to the body and are valid until
// the next Next or Reset.
func (d *Decoder) Next() (Call, bool, error) {
	var more, atomic bool
	var err error
	d.ops, atomic, more, err = d.Append(d.ops[:0])
	return Call{Ops: d.ops, Atomic: atomic}, more, err
}

// Append is Next for a caller with memory of its own: it appends the operations of the next call to ops.
func (d *Decoder) Append(ops []engine.Op) (all []engine.Op, atomic, more bool, err error) {
	if len(d.b) == 0 {
		return ops, false, false, nil
	}
	n := d.uvarint()
	if d.bad {
		return ops, false, false, ErrMalformed
	}
	for range n >> 1 { // a count that is too large fails at the end of the body
		ops = append(ops, engine.Op{})
		if d.op(&ops[len(ops)-1]); d.bad {
			return ops, false, false, ErrMalformed
		}
	}
	return ops, n&1 != 0, true, nil
}

func (d *Decoder) op(op *engine.Op) {
	op.Code = engine.OpCode(d.byte())
	flags := d.byte()
	keep := keepFlag(op.Code)
	op.Keep = flags&keep != 0
	op.Partial, op.Dry = flags&^keep&flagPartial != 0, flags&^keep&flagDry != 0
	op.Key = d.bytes()
	if op.Code == engine.OpTake {
		if flags&flagSameLimit == 0 {
			d.limit()
		}
		op.Limit = d.last
	}
	op.Cost = 1
	if flags&flagCost != 0 {
		op.Cost = d.varint()
	}
	if flags&flagTimes != 0 {
		op.WaitNs, op.TTLNs = d.varint(), d.varint()
	}
	if flags&flagID != 0 {
		op.ID = d.bytes()
	}
	if flags&flagText != 0 {
		op.Text = d.bytes()
	}
	if flags&flagExtra != 0 {
		d.extra(op)
	}
	d.bad = d.bad || !d.Checked && !Valid(op)
}

func (d *Decoder) limit() {
	d.last = engine.Limit{Algorithm: engine.Algorithm(d.byte())}
	modes := d.byte()
	d.last.Mode, d.last.Strikes = engine.WindowMode(modes&(1<<strikesShift-1)), engine.StrikeMode(modes>>strikesShift)
	d.last.Rate.Units, d.last.Rate.PerNs = d.varint(), d.varint()
	d.last.Max, d.last.WindowNs = d.varint(), d.varint()
	d.last.Steps = engine.Steps(d.read(uint64(d.varint())))
}

func (d *Decoder) extra(op *engine.Op) {
	which := d.bits(numExtras)
	if which&extraCalendar != 0 {
		op.Calendar = &engine.Calendar{EndNs: d.varint(), NextEndNs: d.varint()}
	}
	if which&extraIncr != 0 {
		set := d.bits(numIncrBits)
		op.Incr = &engine.Incr{
			Saturate: set&incrSaturate != 0, OnlyIfNew: set&incrOnlyIfNew != 0,
			Expire: engine.ExpireMode(d.byte()),
		}
		op.Incr.By, op.Incr.Lower, op.Incr.Upper, op.Incr.ExpireNs = d.varint(), d.varint(), d.varint(), d.varint()
	}
	op.High = which&extraHigh != 0
	if which&extraPairs != 0 {
		d.pairs(op)
	}
	if which&extraPolicy != 0 {
		d.change(op)
	}
	if which&extraScript != 0 {
		op.Script = &engine.Script{ID: engine.ScriptID(d.byte())}
		for i := range op.Script.Args {
			op.Script.Args[i] = math.Float64frombits(bits.Reverse64(d.uvarint()))
		}
		for i := range op.Script.ID.TextsOf() {
			op.Script.Values[i] = d.bytes()
		}
	}
	if which&extraFrom != 0 {
		op.From = d.bytes()
		d.bad = d.bad || len(op.From) == 0
	}
	if which&extraAsks != 0 {
		copy(op.Asks[:], d.read(uint64(len(op.Asks))))
		d.bad = d.bad || !bound(op)
	}
}

func (d *Decoder) pairs(op *engine.Op) {
	n := d.uvarint()
	divided := n&pairsDivided != 0
	if n &^= pairsDivided; n == 0 || n >= engine.MaxPairs {
		d.bad = true
		return
	}
	op.Also = make([]engine.Pair, n)
	for i := range op.Also {
		op.Also[i] = engine.Pair{Policy: d.bytes(), Key: d.bytes()}
	}
	if divided {
		bits := d.uvarint()
		op.Else = engine.Alternatives(bits)
		d.bad = d.bad || bits>>engine.MaxPairs != 0 || op.Else == 0
	}
}

func (d *Decoder) change(op *engine.Op) {
	op.Policy = &engine.PolicyChange{Do: engine.PolicyDo(d.byte())}
	bits := d.bits(numChangeBits)
	op.Policy.Reset, op.Policy.Own, op.Policy.If = bits&changeReset != 0, bits&changeOwn != 0, bits&changeIf != 0
	if op.Policy.If {
		op.Policy.Version = d.uvarint()
	}
	terms := d.bytes()
	if len(terms) == 0 {
		return
	}
	var err error
	op.Policy.Terms, err = engine.DecodePolicy("", terms)
	d.bad = d.bad || err != nil
}

func (d *Decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	return int64(d.used(uint64(v), n))
}

func (d *Decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	return d.used(v, n)
}

func (d *Decoder) used(v uint64, n int) uint64 {
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// bits reads a byte in which only the known lowest bits may be set. A change that gives another bit a meaning must
// raise Version.
func (d *Decoder) bits(known int) byte {
	b := d.byte()
	d.bad = d.bad || b>>known != 0
	return b
}

func (d *Decoder) byte() byte {
	if b := d.read(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *Decoder) bytes() []byte { return d.read(d.uvarint()) }

func (d *Decoder) read(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}
