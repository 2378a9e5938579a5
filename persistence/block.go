package persistence

import (
	"encoding/binary"
	"math/bits"

	"github.com/weir-project/weir/engine"
)

// block is changes of one lane in the order in which they came. Of a key, and of a value,
// it has what comes behind that which it shares with the change before: keys often begin
// alike, and values with the same limit. The first of a block shares nothing. Lengths are
// those of what follows.
//
//	change = shared keyLen key valueLen+1 shared value
//	       | shared keyLen key 0                        an entry that is gone
type block struct {
	bytes []byte
	last  engine.Change // the caller's until the block is cleared
}

func (b *block) add(c engine.Change) {
	shared := sharedLen(b.last.Key, c.Key)
	b.bytes = binary.AppendUvarint(b.bytes, uint64(shared))
	b.bytes = binary.AppendUvarint(b.bytes, uint64(len(c.Key)-shared))
	b.bytes = append(b.bytes, c.Key[shared:]...)
	b.last.Key = c.Key
	if c.Value == nil {
		b.bytes = append(b.bytes, 0)
		return
	}
	shared = sharedLen(b.last.Value, c.Value)
	b.bytes = binary.AppendUvarint(b.bytes, uint64(len(c.Value)-shared)+1)
	b.bytes = binary.AppendUvarint(b.bytes, uint64(shared))
	b.bytes = append(b.bytes, c.Value[shared:]...)
	b.last.Value = c.Value
}

// maxShared keeps a length that is shared in one byte, and what a block says of itself within
// some 30 times its own length, whoever wrote it.
const maxShared = 127

// clear empties the block, and keeps some room.
func (b *block) clear() {
	b.last = engine.Change{}
	if b.bytes = b.bytes[:0]; cap(b.bytes) > laneBytes {
		b.bytes = nil
	}
}

// sharedLen is how many bytes two texts begin with alike, as far as that is made use of.
func sharedLen(a, b []byte) (n int) {
	end := min(len(a), len(b), maxShared)
	for ; n+8 <= end; n += 8 {
		if differ := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
	}
	for n < end && a[n] == b[n] {
		n++
	}
	return n
}

// blockReader takes a block apart.
type blockReader struct {
	rest       []byte
	key, value []byte // of the last change
}

func newBlockReader(block []byte) *blockReader {
	return &blockReader{rest: block, value: []byte{}} // a value of no bytes is one
}

// next returns the next change, which is valid until the one after it; false when there is
// none.
func (r *blockReader) next() (c engine.Change, ok bool) {
	shared, keyLen := r.number(), r.number()
	if r.key, ok = r.text(r.key, shared, keyLen); !ok {
		return c, false
	}
	c.Key = r.key
	valueLen := r.number()
	if valueLen == 0 {
		return c, r.rest != nil
	}
	if shared = r.number(); r.rest == nil {
		return c, false
	}
	r.value, ok = r.text(r.value, shared, valueLen-1)
	c.Value = r.value
	return c, ok
}

// number takes a number off the block. Without one nothing is left of it, not even an
// empty rest.
func (r *blockReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// text takes what is new in a text off the block, and puts it behind what it shares.
func (r *blockReader) text(before []byte, shared, n uint64) ([]byte, bool) {
	if r.rest == nil || shared > uint64(min(len(before), maxShared)) || n > uint64(len(r.rest)) {
		return nil, false
	}
	text := append(before[:shared], r.rest[:n]...)
	r.rest = r.rest[n:]
	return text, true
}
