package persistence

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Record is the clock record of a flush.
type Record struct {
	Flush uint64 // number of the flush, from 1
	// LimiterNs is limiter time. It is not before the time of any flushed entry.
	LimiterNs int64
	// WallNs is the wall clock of the machine at LimiterNs, in Unix nanoseconds.
	WallNs int64
	// OffsetNs is the wall time of calendar windows minus LimiterNs.
	OffsetNs int64
	// Test marks a record of a test clock.
	Test bool
}

// recordVersion is the first byte of an encoded record.
const recordVersion = 1

// recordLen is the length of an encoded record: version, test flag, four
// integers and a checksum.
const recordLen = 2 + 4*8 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns the encoded record.
func (r Record) encode() []byte {
	b := make([]byte, 2, recordLen)
	b[0] = recordVersion
	if r.Test {
		b[1] = 1
	}
	b = binary.LittleEndian.AppendUint64(b, r.Flush)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.LimiterNs))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.WallNs))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.OffsetNs))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeRecord decodes what encode returned. For any other bytes it returns ErrDamaged.
func decodeRecord(b []byte) (Record, error) {
	if len(b) != recordLen || b[0] != recordVersion || b[1] > 1 {
		return Record{}, fmt.Errorf("%w: the clock record is %d bytes of an unknown kind", ErrDamaged, len(b))
	}
	body := b[:recordLen-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[recordLen-4:]) {
		return Record{}, fmt.Errorf("%w: the checksum of the clock record is wrong", ErrDamaged)
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(b[2+8*i:]) }
	r := Record{
		Test:      b[1] == 1,
		Flush:     field(0),
		LimiterNs: int64(field(1)),
		WallNs:    int64(field(2)),
		OffsetNs:  int64(field(3)),
	}
	if r.LimiterNs <= 0 {
		return Record{}, fmt.Errorf("%w: the clock record says limiter time %d", ErrDamaged, r.LimiterNs)
	}
	return r, nil
}
