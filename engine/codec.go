package engine

import (
	"encoding/binary"
	"errors"
)

// The stored form of an entry. The key is a class byte and the entry's key; the
// value is the kind, the limit and the state, integers as varints.
//
// What a log gained is stored alone: with storedMore in the kind the state holds only the
// records that come behind those of the value before.
//
//	value  = kind limit state
//	limit  = mode(and strikes << 4) units perNs max windowNs steps(len, bytes)   (not for block, token, counter, scripted, hold; claims: algorithm first)

// ErrStored is returned by Load for what Drain did not write.
var ErrStored = errors.New("not a stored entry")

// encode adds an entry to a batch.
func (s *shard) encode(b *batch, e entry) {
	start := len(b.buf)
	b.buf = append(append(b.buf, storageKind(e)), e.key()...)
	value := len(b.buf)
	b.buf = append(b.buf, e.storedKind())
	if id := e.limit(); id != 0 {
		b.buf = s.appendLimit(b.buf, e)
	}
	b.buf = s.appendState(b.buf, e)
	s.keepLog(e)
	b.spans = append(b.spans, span{start, value, len(b.buf)})
}

// appendLimit appends the limit of an entry; that of claims does not follow from their kind.
func (s *shard) appendLimit(b []byte, e entry) []byte {
	l := s.limits.at(e.limit())
	if e.kind() == kindClaims {
		b = append(b, byte(l.Algorithm))
	}
	return l.append(b)
}

func (l *Limit) append(b []byte) []byte {
	b = append(b, byte(l.Mode)|byte(l.Strikes)<<strikesShift) // versions that do not know Strikes refuse such a mode
	for _, n := range [...]int64{l.Rate.Units, l.Rate.PerNs, l.Max, l.WindowNs, int64(len(l.Steps))} {
		b = binary.AppendVarint(b, n)
	}
	return append(b, l.Steps...)
}

func (s *shard) appendState(b []byte, e entry) []byte {
	st := e.state()
	switch e.kind() {
	case uint8(SlidingLog):
		log := readLog(st)
		return s.appendLog(b, &log)
	case uint8(Strike):
		b = binary.AppendVarint(b, strikeBlockedNs(st))
		log := readLog(st)
		return s.appendLog(b, &log)
	case uint8(Concurrency), kindClaims:
		return s.appendLeases(b, readLeases(st))
	case kindHold:
		x := readHold(st)
		return append(b, st[:x.len()]...)
	case kindBlock:
		untilNs, reason := readBlock(st)
		if isEverywhere(st) {
			untilNs = ^untilNs // below zero, which versions refuse that do not know it
		}
		return append(binary.AppendVarint(b, untilNs), reason...)
	case uint8(Scripted):
		return s.appendScripted(b, st)
	case uint8(TokenBucket), uint8(LeakyBucket):
		var all [longBucketLen]byte
		writeWide(all[:], e.bucket())
		return append(b, all[:]...)
	}
	return append(b, st[:stateLens[e.kind()]]...)
}

func (s *shard) appendLog(b []byte, log *unitLog) []byte {
	b = binary.AppendVarint(b, log.units-log.kept)
	if log.kept > 0 && log.keptEnd > 0 {
		return logBlock(s.slab.at(log.tail)).appendFrom(b, log.keptEnd, log.lastNs)
	}
	lastNs := int64(0)
	for r := range log.behind(&s.slab, log.kept) {
		b = binary.AppendVarint(b, r.atNs-lastNs)
		b = binary.AppendVarint(b, r.units)
		lastNs = r.atNs
	}
	return b
}

func (s *shard) appendLeases(b []byte, set leaseSet) []byte {
	b = binary.AppendVarint(b, int64(set.count))
	for _, x := range set.all(&s.slab) {
		b = binary.AppendVarint(b, x.expiresNs)
		b = binary.AppendVarint(b, x.units)
		b = binary.AppendVarint(b, int64(len(x.id)))
		b = append(b, x.id...)
	}
	return b
}

// decoder reads a stored value; after the first fault it only returns zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) varint() int64 {
	n, used := binary.Varint(d.b)
	if used <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[used:]
	return n
}

// within reads a varint that must lie between two bounds.
func (d *decoder) within(low, high int64) int64 {
	n := d.varint()
	d.bad = d.bad || n < low || n > high
	return n
}

func (d *decoder) bytes(n int64) []byte {
	if n < 0 || n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// limit reads the limit of an algorithm and checks it as far as the arithmetic
// depends on it.
func (d *decoder) limit(a Algorithm) Limit {
	modes := d.byte()
	l := Limit{Algorithm: a, Mode: WindowMode(modes & (1<<strikesShift - 1)), Strikes: StrikeMode(modes >> strikesShift)}
	l.Rate.Units, l.Rate.PerNs = d.within(0, MaxUnits), d.within(0, MaxWindowNs)
	l.Max = d.within(0, MaxUnits)
	l.WindowNs = d.within(0, MaxWindowNs)
	l.Steps = Steps(d.bytes(d.within(0, MaxSteps*stepLen)))
	bucket := a == TokenBucket || a == LeakyBucket
	windowed := a == SlidingLog || a == SlidingCounter || a == Strike
	d.bad = d.bad || bucket && (l.Rate.Units == 0 || l.Rate.PerNs == 0) || windowed && l.WindowNs == 0 ||
		l.Mode > Forever || len(l.Steps)%stepLen != 0 || a == Strike && len(l.Steps) == 0 || !l.Strikes.ValidFor(a)
	return l
}
