package persistence

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// streamVersion is the version of a stream and of the files in it. The files of version 1, that of weir 0.1.0, are
// those of an image of version 4 (see imageVersion), and those of version 2 of version 5 or older.
const streamVersion = 2

// streamMagic begins a stream. The version, the number of files and the CRC-32C of all three follow. Each file then
// consists of its head (see appendHead), its content, and the CRC-32C of both.
var streamMagic = []byte("weir image stream\n")

const streamHead = 18 + 4 + 4 + 4

func encodeStreamHead(version, files uint32) []byte {
	b := binary.LittleEndian.AppendUint32(bytes.Clone(streamMagic), version)
	b = binary.LittleEndian.AppendUint32(b, files)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseStreamHead decodes a complete head of streamHead bytes into the version and the number of files. It returns
// false for an invalid head.
func parseStreamHead(b []byte) (version, files uint32, ok bool) {
	rest, ok := bytes.CutPrefix(b, streamMagic)
	if !ok {
		return 0, 0, false
	}
	sum := crc32.Checksum(b[:streamHead-4], castagnoli)
	return binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:]),
		sum == binary.LittleEndian.Uint32(rest[8:])
}
