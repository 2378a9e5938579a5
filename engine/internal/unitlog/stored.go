package unitlog

import (
	"encoding/binary"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/rule"
)

// A long log that gains a few units between two drains is stored in parts: a drain contains only the new units. If
// the log lost units for another reason than their age, the drain contains all units.

// StoresMore reports whether the next stored value appends to the value before.
func (l *Log) StoresMore() bool { return l.kept > 0 }

// KeepAll records that all units have been handed out.
func (l *Log) KeepAll(s *arena.Slab) {
	if l.kept = l.Units; l.tail != 0 {
		l.keptEnd = block(s.At(l.tail)).end()
	}
}

// ForgetKept makes the next stored value contain all units.
func (l *Log) ForgetKept() { l.kept, l.keptEnd = 0, 0 }

// AppendStored appends the stored form of the units that no drain has stored yet.
func (l *Log) AppendStored(b []byte, s *arena.Slab) []byte {
	b = binary.AppendVarint(b, l.Units-l.kept)
	if l.kept > 0 && l.keptEnd > 0 {
		return block(s.At(l.tail)).appendFrom(b, l.keptEnd, l.LastNs)
	}
	lastNs := int64(0)
	for r := range l.behind(s, l.kept) {
		b = binary.AppendVarint(b, r.AtNs-lastNs)
		b = binary.AppendVarint(b, r.Units)
		lastNs = r.AtNs
	}
	return b
}

// Load adds stored units. They may include units that had left the window already. The log keeps at most the newest
// rule.MaxLogUnits of them.
func (l *Log) Load(s *arena.Slab, d *codec.Decoder) {
	atNs := int64(0)
	for left := d.Within(0, rule.MaxLogUnits); left > 0 && !d.Bad; {
		atNs += d.Within(0, arith.Never-atNs)
		units := d.Within(1, left)
		if left -= units; !d.Bad {
			l.Append(s, atNs, units)
		}
	}
	l.DropOldest(s, l.Units-rule.MaxLogUnits)
}

// AppendTimes appends the stored form of a log whose records have a unit each: the times.
func (l *Log) AppendTimes(b []byte, s *arena.Slab) []byte {
	b = binary.AppendVarint(b, l.Units)
	last := int64(0)
	for r := range l.All(s) {
		b = binary.AppendVarint(b, r.AtNs-last)
		last = r.AtNs
	}
	return b
}

// LoadTimes adds the times that AppendTimes stored. No time at all, or a time above most, is a fault.
func (l *Log) LoadTimes(s *arena.Slab, d *codec.Decoder, most int64) {
	at := int64(0)
	for left := d.Within(0, rule.MaxLogUnits); left > 0 && !d.Bad; left-- {
		if at += d.Within(0, most-at); !d.Bad {
			l.Append(s, at, 1)
		}
	}
	d.Bad = d.Bad || l.Units == 0
}
