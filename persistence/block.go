package persistence

import (
	"encoding/binary"
	"math/bits"

	"github.com/weir-project/weir/engine"
)

// block holds changes of one lane, in order. Keys and values are prefix-compressed: each key omits the prefix that it
// shares with the previous key, and each value the prefix that it shares with the previous value. Keys often begin
// alike, and so do values with the same limit. The first change of a block shares nothing. A length counts the bytes
// after the shared prefix.
//
//	change = shared keyLen key valueLen+1 shared value
//	       | shared keyLen key 0                        a deleted entry
type block struct {
	bytes []byte
	last  engine.Change // the last key and value; their bytes belong to the caller of add
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

// maxShared bounds the length of a shared prefix, so that the length takes one byte. The bound also keeps a decoded
// block below about 30 times its encoded length, even for hostile input.
const maxShared = 127

// clear empties the block, and keeps a small buffer.
func (b *block) clear() {
	b.last = engine.Change{}
	if b.bytes = b.bytes[:0]; cap(b.bytes) > laneBytes {
		b.bytes = nil
	}
}

// sharedLen returns the length of the common prefix of a and b, at most maxShared.
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

// blockReader decodes a block.
type blockReader struct {
	rest       []byte
	key, value []byte // the key and the value of the last change
}

func newBlockReader(block []byte) *blockReader {
	return &blockReader{rest: block, value: []byte{}} // not nil, because a nil value would mean a deletion
}

// next returns the next change, which is valid until the following call. It returns false at a malformed change and at
// the end.
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

// number decodes a number from the block. If it fails, rest becomes nil.
func (r *blockReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// text decodes a text: the shared prefix of before, and n bytes from the block.
func (r *blockReader) text(before []byte, shared, n uint64) ([]byte, bool) {
	if r.rest == nil || shared > uint64(min(len(before), maxShared)) || n > uint64(len(r.rest)) {
		return nil, false
	}
	text := append(before[:shared], r.rest[:n]...)
	r.rest = r.rest[n:]
	return text, true
}
