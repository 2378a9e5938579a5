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
// A key whose block everywhere has a version has storedVersion, and then the same with the version before the last
// until; the first until is 0 if the key has no block of its own.

// storedBoth and storedVersion begin stored forms that older versions refuse, because they are no varints.
var (
	storedBoth    = bytes.Repeat([]byte{0xff}, binary.MaxVarintLen64+1)
	storedVersion = append(bytes.Repeat([]byte{0xff}, binary.MaxVarintLen64), 0xfe)
)

func appendBlocks(b, state []byte) []byte {
	own, everywhere := ReadBlocks(state)
	return AppendBlocks(b, own, everywhere)
}

// AppendBlocks appends the stored form of a key's blocks, of which at least one must exist.
func AppendBlocks(b []byte, own, everywhere Block) []byte {
	begins := storedBoth
	switch {
	case everywhere.Version != 0:
		begins = storedVersion
	case everywhere.UntilNs == 0:
		return append(binary.AppendVarint(b, own.UntilNs), own.Reason...)
	case own.UntilNs == 0: // negative: older versions refuse it
		return append(binary.AppendVarint(b, ^everywhere.UntilNs), everywhere.Reason...)
	}
	b = binary.AppendVarint(append(b, begins...), own.UntilNs)
	b = append(binary.AppendVarint(b, int64(len(own.Reason))), own.Reason...)
	if everywhere.Version != 0 {
		b = binary.AppendVarint(b, int64(everywhere.Version))
	}
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
	rest := func(untilNs int64, version uint64) Block {
		b := Block{untilNs, d.Bytes(int64(len(d.B))), version}
		d.Bad = d.Bad || len(b.Reason) > rule.MaxReasonLen
		return b
	}
	begins := func(with []byte) (is bool) {
		d.B, is = bytes.CutPrefix(d.B, with)
		return is
	}
	least, version := int64(1), uint64(0)
	hasVersion := begins(storedVersion)
	if hasVersion {
		least = 0
	}
	if hasVersion || begins(storedBoth) {
		own.UntilNs = d.Within(least, arith.Never)
		own.Reason = d.Bytes(d.Within(0, rule.MaxReasonLen))
		d.Bad = d.Bad || own.UntilNs == 0 && len(own.Reason) > 0
		if hasVersion {
			version = uint64(d.Within(1, arith.Never))
		}
		return own, rest(d.Within(1, arith.Never), version)
	}
	untilNs := d.Varint()
	if untilNs < 0 {
		return Block{}, rest(^untilNs, 0)
	}
	return rest(untilNs, 0), Block{}
}
