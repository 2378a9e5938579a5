package wallog

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/hashicorp/raft-wal/segment"
)

const (
	// sectorBytes is the unit that a disk writes completely or not at all.
	sectorBytes = 512
	// maxSearchBytes bounds the bytes that laterBatch checksums, which takes a tenth of a second. After a crash it
	// needs a hundredth of that.
	maxSearchBytes = 1 << 30
)

// torn returns "" if the bytes after the last complete batch of a segment can be a torn write, and otherwise the
// reason why not. next is the first entry of the write.
//
// Only the last write can be torn, and a torn write lacks whole sectors. The segment was created with zeros, and each
// sector of the write either reached the disk or is still zero.
func torn(b []byte, s scan, next uint64) string {
	end := min(s.end+(lastNonzero(b[s.end:])+frameHeadBytes-1)/frameHeadBytes*frameHeadBytes, len(b))
	if laterBatch(b[:end], s.end, next) {
		return s.why + ", and later entries are whole"
	}
	if s.summed {
		end = s.at + frameHeadBytes
	}
	if last, ok := frameAt(b, end-frameHeadBytes); ok && last.kind == segment.FrameCommit && !lacksSector(b, s.end,
		end) &&
		(s.summed || endsWrite(b[s.end:end], s.end, last.value)) {
		return s.why + ", and no sector of the write is missing"
	}
	if !s.summed && s.at < len(b) && !lacksSector(b, max(s.end, s.at/sectorBytes*sectorBytes), s.at+1) {
		return s.why + ", in a sector that was written"
	}
	return ""
}

// leastEntryBytes is the length of the shortest entry with its frame header.
const leastEntryBytes = 2 * frameHeadBytes

// beginsBatch reports whether an entry begins at at, with an index from least to most.
func beginsBatch(b []byte, at int, least, most uint64) bool {
	f, ok := frameAt(b, at)
	if !ok || f.kind != segment.FrameEntry {
		return false
	}
	index, _ := binary.Uvarint(b[at+frameHeadBytes : min(at+f.size(), len(b))])
	return least <= index && index <= most
}

// endsWrite reports whether the last frame of a write without a missing sector is really its commit frame. from is the
// offset of the write.
//
// A write that reached the disk only in its first sectors ends within an entry, whose data may look like a commit
// frame. Such a write ends at a sector boundary, and no single flipped bit would make that checksum match.
func endsWrite(b []byte, from int, sum uint32) bool {
	if len(b) < frameHeadBytes {
		return false // the file ends within a frame
	}
	data := b[:len(b)-frameHeadBytes]
	return (from+len(b))%sectorBytes != 0 || oneBitFlipped(len(data), crc32.Checksum(data, castagnoli)^sum)
}

// oneBitFlipped reports whether the difference of two checksums of so many bytes can come from one flipped bit. A CRC
// is linear: the difference depends only on the position of the bit.
func oneBitFlipped(bytes int, difference uint32) bool {
	var of [8]uint32 // of each bit of a byte
	for i := range of {
		of[i] = castagnoli[1<<i]
	}
	for range bytes {
		for i, d := range of {
			if d == difference {
				return true
			}
			of[i] = castagnoli[byte(d)] ^ d>>8
		}
	}
	return false
}

// lacksSector reports whether a sector of a write of [from, to) is all zeros.
func lacksSector(b []byte, from, to int) bool {
	for at := from; at < to; {
		next := (at/sectorBytes + 1) * sectorBytes
		if lastNonzero(b[at:min(next, len(b))]) == 0 {
			return true
		}
		at = next
	}
	return false
}

// laterBatch reports whether a batch with a valid checksum begins after from. One write has one commit frame, so
// everything before such a batch was written and synced. A batch must begin with an entry that can follow next, so
// that the data of an entry rarely pass for a batch.
func laterBatch(b []byte, from int, next uint64) bool {
	const none = -1
	commits := make([]int32, (len(b)-from)/frameHeadBytes+1) // by frame position: the commit frame that follows
	commitOf := func(at int) int {
		if i := (at - from) / frameHeadBytes; i < len(commits) {
			return int(commits[i])
		}
		return none
	}
	for i := len(commits) - 1; i >= 0; i-- {
		at := from + i*frameHeadBytes
		f, ok := frameAt(b, at)
		switch {
		case !ok:
			commits[i] = none
		case f.kind == segment.FrameCommit:
			commits[i] = int32(at)
		default:
			commits[i] = int32(commitOf(at + f.size()))
		}
	}
	left := maxSearchBytes
	for i := 1; i < len(commits); i++ {
		at, commit := from+i*frameHeadBytes, int(commits[i])
		if commit <= at || !beginsBatch(b, at, next, next+uint64((at-from)/leastEntryBytes)) {
			continue
		}
		f, _ := frameAt(b, commit)
		if crc32.Checksum(b[at:commit], castagnoli) == f.value {
			return true
		}
		if left -= commit - at; left < 0 {
			return true // undecided: treat it as damage
		}
	}
	return false
}
