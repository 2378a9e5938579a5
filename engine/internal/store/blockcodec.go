package store

import (
	"bytes"
	"encoding/binary"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The stored form of a key's blocks. A block of one key is until reason, and a block everywhere ^until reason. A key
// with both has storedBoth, the block of the key as until reason(len, bytes), and the block everywhere as until reason.

// storedBoth begins the stored form of a key with both blocks. It is no varint, so older versions refuse it.
var storedBoth = bytes.Repeat([]byte{0xff}, binary.MaxVarintLen64+1)

func appendBlocks(b, state []byte) []byte {
	own, everywhere := ReadBlocks(state)
	return AppendBlocks(b, own, everywhere)
}

// AppendBlocks appends the stored form of a key's blocks, of which at least one must exist.
func AppendBlocks(b []byte, own, everywhere Block) []byte {
	switch {
	case everywhere.UntilNs == 0:
		return append(binary.AppendVarint(b, own.UntilNs), own.Reason...)
	case own.UntilNs == 0: // negative: older versions refuse it
		return append(binary.AppendVarint(b, ^everywhere.UntilNs), everywhere.Reason...)
	}
	b = binary.AppendVarint(append(b, storedBoth...), own.UntilNs)
	b = append(binary.AppendVarint(b, int64(len(own.Reason))), own.Reason...)
	return append(binary.AppendVarint(b, everywhere.UntilNs), everywhere.Reason...)
}

// ReadStoredBlocks decodes the stored form of a key's blocks. It returns false for bytes that AppendBlocks did not
// write.
func ReadStoredBlocks(value []byte) (own, everywhere Block, ok bool) {
	d := codec.Decoder{B: value}
	own, everywhere = readStoredBlocks(&d)
	return own, everywhere, !d.Bad
}

func readStoredBlocks(d *codec.Decoder) (own, everywhere Block) {
	rest := func(untilNs int64) Block {
		b := Block{untilNs, d.Bytes(int64(len(d.B)))}
		d.Bad = d.Bad || len(b.Reason) > rule.MaxReasonLen
		return b
	}
	if more, both := bytes.CutPrefix(d.B, storedBoth); both {
		d.B = more
		own.UntilNs = d.Within(1, arith.Never)
		own.Reason = d.Bytes(d.Within(0, rule.MaxReasonLen))
		return own, rest(d.Within(1, arith.Never))
	}
	untilNs := d.Varint()
	if untilNs < 0 {
		return Block{}, rest(^untilNs)
	}
	return rest(untilNs), Block{}
}
