package wallog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// markName is the file of the acknowledged mark, in the directory of the segments.
const markName = "acknowledged"

// The file has two slots with a checksum each. They are written alternately, so a torn write leaves the older slot
// valid. Each slot has its own page.
const (
	slotBytes  = 72
	slotStride = 4096
	markBytes  = 2 * slotStride
	bootBytes  = 36
)

// mark is the acknowledged mark: the position where the last acknowledged append ended. Without it, damage to the
// last write of the log would look like a torn write.
type mark struct {
	seq     uint64 // 0: no mark
	segment uint64 // the ID of the last segment that was appended to
	end     uint64 // where the last append to it ended
	boot    string // boot ID of the machine when the mark was written

	thisBoot bool // written since the machine booted, so no page cache was lost
	exact    bool // no later append was acknowledged
	damaged  bool // the file is missing, or neither slot is valid
}

// acknowledged returns the end of the last acknowledged batch of a segment, or 0 if the mark does not record it.
func (m mark) acknowledged(id uint64) int {
	if m.seq == 0 || id != m.segment {
		return 0
	}
	return int(m.end)
}

// isLast reports whether certainly no append after end was acknowledged.
func (m mark) isLast(id uint64, end int) bool {
	return m.exact && m.acknowledged(id) == end && id >= m.segment
}

func (m mark) encode() []byte {
	b := make([]byte, slotBytes)
	binary.LittleEndian.PutUint64(b[0:], m.seq)
	binary.LittleEndian.PutUint64(b[8:], m.segment)
	binary.LittleEndian.PutUint64(b[16:], m.end)
	copy(b[24:24+bootBytes], m.boot)
	binary.LittleEndian.PutUint32(b[slotBytes-4:], crc32.Checksum(b[:slotBytes-4], castagnoli))
	return b
}

func decodeMark(b []byte) (m mark, ok bool) {
	if len(b) < slotBytes || binary.LittleEndian.Uint32(b[slotBytes-4:]) != crc32.Checksum(
		b[:slotBytes-4], castagnoli) {
		return mark{}, false
	}
	m = mark{
		seq: binary.LittleEndian.Uint64(b[0:]), segment: binary.LittleEndian.Uint64(b[8:]),
		end:  binary.LittleEndian.Uint64(b[16:]),
		boot: strings.TrimRight(string(b[24:24+bootBytes]), "\x00"),
	}
	return m, m.seq > 0
}

// readMark reads the mark of a directory. Only a log without segments has none. Without sync, a mark is valid only
// until the machine reboots.
func readMark(dir, boot string, sync bool) (mark, error) {
	b, err := os.ReadFile(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return mark{damaged: true}, nil
	} else if err != nil {
		return mark{}, err
	}
	m := newestMark(b)
	m.thisBoot = boot != "" && m.boot == boot
	m.exact = m.exact && m.thisBoot
	if !sync && !m.thisBoot {
		m.end = 0
	}
	return m, nil
}

// newestMark returns the newer slot. The mark is exact if the other slot is its predecessor, as it always is after a
// kill of the process.
func newestMark(b []byte) mark {
	var slots [2]mark
	var valid [2]bool
	for i := range slots {
		slots[i], valid[i] = decodeMark(b[min(i*slotStride, len(b)):])
	}
	newer := slots[0]
	if slots[1].seq > slots[0].seq {
		newer = slots[1]
	}
	switch {
	case valid[0] && valid[1]:
		newer.exact = slots[0].seq+slots[1].seq == 2*newer.seq-1
	case !valid[0] && !valid[1]:
		newer.damaged = true
	}
	return newer
}

// bootID returns the boot ID of the machine, or "" if it is unknown.
func bootID() string {
	f, err := os.Open("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, bootBytes))
	return strings.TrimSpace(string(b))
}
