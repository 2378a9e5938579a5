package script

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// MaxValueBytes bounds the byte string that a client keeps under a key. To copy such a string takes tens of
// microseconds under the lock of its shard. A command with two strings must fit a log entry of a cluster.
const MaxValueBytes = 1 << 20

// A byte string is stored in a chain of blocks outside the record of its entry. words[0] of the record (state[8:]) is
// the number of bytes, and words[1] (state[16:]) refers to the first block. Each block begins with a reference of four
// bytes to the next block, which is 0 in the last block. Every block but the last has arena.MaxRecord bytes.
const (
	textBlockHead = 4
	textBlockRoom = arena.MaxRecord - textBlockHead
)

// text refers to a stored byte string by its length and its first block. An empty string has no block.
type text struct {
	len  int
	head arena.Ref
}

// isText reports whether the state of a scripted entry refers to a byte string.
func isText(state []byte) bool { return shapes(state[0]).isBytes() }

func (x shapes) isBytes() bool { return x == shapeText || x == shapeList || x == shapeSet }

func readText(state []byte) text {
	return text{len: int(le.Uint64(state[8:])), head: arena.Ref(le.Uint64(state[16:]))}
}

// writeText makes the record in a state refer to a text.
func writeText(state []byte, x text) {
	le.PutUint64(state[8:], uint64(x.len))
	le.PutUint64(state[16:], uint64(x.head))
}

// appendTo appends the bytes.
func (x text) appendTo(b []byte, s *arena.Slab) []byte {
	for r, left := x.head, x.len; left > 0; {
		block := s.At(r)
		n := min(left, textBlockRoom)
		b = append(b, block[textBlockHead:textBlockHead+n]...)
		r, left = le.Uint32(block), left-n
	}
	return b
}

// overwrite replaces the bytes by the same number of other bytes.
func (x text) overwrite(b []byte, s *arena.Slab) {
	for r := x.head; len(b) > 0; {
		block, n := s.At(r), min(len(b), textBlockRoom)
		copy(block[textBlockHead:], b[:n])
		r, b = le.Uint32(block), b[n:]
	}
}

// newText stores bytes, if room admits each of the blocks that they need.
func newText(b []byte, s *arena.Slab, room func(n int) bool) (x text, ok bool) {
	x.len = len(b)
	last := arena.Ref(0)
	for len(b) > 0 {
		n := min(len(b), textBlockRoom)
		if !room(textBlockHead + n) {
			s.FreeChain(x.head)
			return text{}, false
		}
		r := s.Alloc(textBlockHead + n)
		block := s.At(r)
		le.PutUint32(block, 0)
		copy(block[textBlockHead:], b[:n])
		if b = b[n:]; last == 0 {
			x.head = r
		} else {
			le.PutUint32(s.At(last), r)
		}
		last = r
	}
	return x, true
}

// AppendStored appends the stored form of a scripted entry's state. A text is stored with its bytes instead of a
// reference, and a log with its times.
func AppendStored(b, state []byte, s *arena.Slab) []byte {
	from := len(b)
	b = append(b, state[:StateLen]...)
	if isText(state) {
		x := readText(state)
		writeText(b[from:], text{len: x.len})
		return x.appendTo(b, s)
	}
	if isLog(state) {
		log := unitlog.Read(state[logAt:])
		clear(b[from+logAt : from+logAt+unitlog.StateLen])
		return log.AppendTimes(b, s)
	}
	return b
}

// Load is the inverse of AppendStored.
func Load(st []byte, d *codec.Decoder, s *arena.Slab) {
	record := d.Bytes(StateLen)
	switch {
	case d.Bad:
		return
	case isLog(record):
		var log unitlog.Log
		log.LoadTimes(s, d, MaxSlidingSetMs)
		copy(st, record)
		log.Write(st[logAt:])
		return
	case !isText(record):
		copy(st, record)
		return
	}
	if n := readText(record).len; n < 0 || n > MaxValueBytes || n != len(d.B) {
		d.Bad = true
		return
	}
	x, _ := newText(d.Bytes(int64(len(d.B))), s, func(int) bool { return true })
	copy(st, record)
	writeText(st, x)
}

// LogState returns the part of a state that is a log, or nil if it has none.
func LogState(state []byte) []byte {
	if isLog(state) {
		return state[logAt:]
	}
	return nil
}

// UsedUnits returns the count or the length of the log in a state, or 0 for a state of another shape.
func UsedUnits(state []byte) int64 {
	switch record := ReadRecord(state); record.shape {
	case shapeCount:
		return record.words[0]
	case shapeLog:
		return record.log.Units
	case shapeList, shapeSet:
		return record.words[0] / hitBytes
	}
	return 0
}

// Bytes returns the memory that a state uses outside itself.
func Bytes(state []byte, s *arena.Slab) int {
	if isText(state) {
		return s.ChainBytes(readText(state).head)
	}
	record := ReadRecord(state)
	return record.log.Bytes(s)
}

// ValueBytes returns the memory of the byte string of a state, or 0 if it has none.
func ValueBytes(state []byte, s *arena.Slab) int {
	if isText(state) {
		return s.ChainBytes(readText(state).head)
	}
	return 0
}

// ValueLen returns the length of the byte string of a state, or 0 if it has none.
func ValueLen(state []byte) int {
	if isText(state) {
		return readText(state).len
	}
	return 0
}

// FreeValue frees the byte string of a state, if it has one.
func FreeValue(state []byte, s *arena.Slab) {
	if isText(state) {
		s.FreeChain(readText(state).head)
	}
}

// FirstBlock returns the first block of the byte string of a state, or 0 if it has none.
func FirstBlock(state []byte) arena.Ref {
	if isText(state) {
		return readText(state).head
	}
	return 0
}

// MoveBlocks moves the byte string of a state out of the pages that compaction empties.
func MoveBlocks(state []byte, s *arena.Slab) {
	if x := readText(state); isText(state) && x.head != 0 {
		x.head, _ = s.MoveChain(x.head)
		writeText(state, x)
	}
}
