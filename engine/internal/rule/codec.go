package rule

import (
	"encoding/binary"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
)

// sinceBit marks a limit whose stored form ends with Since, in the byte of its mode.
const sinceBit = 0x80

// Append appends the stored form of a limit, without its algorithm.
func (l *Limit) Append(b []byte) []byte {
	modes := byte(l.Mode) | byte(l.Strikes)<<strikesShift // older versions reject a mode with unknown bits
	if l.Since != (Moment{}) {
		modes |= sinceBit
	}
	b = append(b, modes)
	for _, n := range [...]int64{l.Rate.Units, l.Rate.PerNs, l.Max, l.WindowNs, int64(len(l.Steps))} {
		b = binary.AppendVarint(b, n)
	}
	b = append(b, l.Steps...)
	if l.Since != (Moment{}) {
		b = l.Since.Append(b)
	}
	return b
}

// Append appends the stored form of a moment.
func (m Moment) Append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendVarint(b, m.AtNs), int64(m.Version))
}

// ReadMoment reads a moment.
func ReadMoment(d *codec.Decoder) Moment {
	return Moment{AtNs: d.Within(0, arith.Never), Version: uint64(d.Within(0, arith.Never))}
}

// ReadLimit reads the limit of an algorithm, and checks the values on which the arithmetic depends.
func ReadLimit(d *codec.Decoder, a Algorithm) Limit {
	modes := d.Byte()
	l := Limit{Algorithm: a, Mode: WindowMode(modes & (1<<strikesShift - 1)),
		Strikes: StrikeMode(modes &^ sinceBit >> strikesShift)}
	l.Rate.Units, l.Rate.PerNs = d.Within(0, MaxUnits), d.Within(0, MaxWindowNs)
	l.Max = d.Within(0, MaxUnits)
	l.WindowNs = d.Within(0, MaxWindowNs)
	l.Steps = Steps(d.Bytes(d.Within(0, MaxSteps*stepLen)))
	if modes&sinceBit != 0 {
		l.Since = ReadMoment(d)
		d.Bad = d.Bad || l.Since == Moment{}
	}
	bucket := a == TokenBucket || a == LeakyBucket
	windowed := a == SlidingLog || a == SlidingCounter || a == Strike
	d.Bad = d.Bad || bucket && (l.Rate.Units == 0 || l.Rate.PerNs == 0) || windowed && l.WindowNs == 0 ||
		l.Mode > Forever || len(l.Steps)%stepLen != 0 || a == Strike && len(l.Steps) == 0 || !l.Strikes.ValidFor(a)
	return l
}
