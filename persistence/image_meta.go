package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// imageVersion is the version of META and of everything in an image. oldestImage is that of weir 0.1.0, and the oldest
// that this program reads. Version 5 stores the limiters of a policy for a key together (see orderedBlock).
const imageVersion, oldestImage = 5, 4

const (
	// maxMetaBytes bounds the caller's bytes in META: enough for the members of any cluster.
	maxMetaBytes = 64 << 10
	// maxImageFiles bounds the files of an image. With tableBytes each, they have 64 GiB, far more than any table
	// needs.
	maxImageFiles = 1 << 14
	// maxImageName bounds a file name. Pebble's marker files have names of about 40 bytes.
	maxImageName = 64
	// maxImageMeta is the greatest length of META.
	maxImageMeta = metaHead + maxMetaBytes + maxImageFiles*(1+maxImageName+8+4) + 4
)

// metaMagic begins META. metaHead is the length of the part before the caller's bytes: magic, version, index, term, and
// the numbers of bytes and files that follow.
var metaMagic = []byte("weir image\n")

const metaHead = 11 + 4 + 8 + 8 + 4 + 4

// imageMeta is the content of META.
type imageMeta struct {
	index, term uint64
	meta        []byte
	files       []imageFile
}

// encode returns META with its CRC-32C.
func (m imageMeta) encode() []byte {
	b := bytes.Clone(metaMagic)
	b = binary.LittleEndian.AppendUint32(b, imageVersion)
	b = binary.LittleEndian.AppendUint64(b, m.index)
	b = binary.LittleEndian.AppendUint64(b, m.term)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.meta)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.files)))
	b = append(b, m.meta...)
	for _, f := range m.files {
		b = binary.LittleEndian.AppendUint32(f.appendHead(b), f.sum)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeImageMeta decodes META. It returns ErrNewer or ErrOlder for another version, and ErrDamaged for any other
// content.
func decodeImageMeta(b []byte) (imageMeta, error) {
	rest, ok := bytes.CutPrefix(b, metaMagic)
	if !ok || len(b) < metaHead+4 {
		return imageMeta{}, fmt.Errorf("%w (%s is %d bytes of something else)", ErrDamaged, metaName, len(b))
	}
	if err := known("image format", binary.LittleEndian.Uint32(rest), oldestImage, imageVersion); err != nil {
		return imageMeta{}, err
	}
	if end := len(b) - 4; crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return imageMeta{}, fmt.Errorf("%w (the checksum of %s is wrong)", ErrDamaged, metaName)
	}
	m, ok := parseImageMeta(rest[4 : len(rest)-4])
	if !ok {
		return imageMeta{}, fmt.Errorf("%w (%s contradicts itself)", ErrDamaged, metaName)
	}
	return m, nil
}

// parseImageMeta decodes the part of META between the version and the checksum.
func parseImageMeta(b []byte) (imageMeta, bool) {
	m := imageMeta{index: binary.LittleEndian.Uint64(b), term: binary.LittleEndian.Uint64(b[8:])}
	metaLen, files := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])
	b = b[24:]
	if metaLen > maxMetaBytes || int(metaLen) > len(b) || files > maxImageFiles {
		return m, false
	}
	m.meta, b = bytes.Clone(b[:metaLen]), b[metaLen:]
	for range files {
		if len(b) < 1 || len(b) < 1+int(b[0])+8+4 {
			return m, false
		}
		n := 1 + int(b[0]) + 8
		f, ok := parseFileHead(b[:n])
		if !ok || m.has(f.name) {
			return m, false
		}
		f.sum, b = binary.LittleEndian.Uint32(b[n:]), b[n+4:]
		m.files = append(m.files, f)
	}
	return m, len(b) == 0
}

// has reports whether a file with this name is listed.
func (m *imageMeta) has(name string) bool {
	for _, f := range m.files {
		if f.name == name {
			return true
		}
	}
	return false
}

// info describes the image.
func (m *imageMeta) info() ImageInfo {
	size := int64(streamHead)
	for _, f := range m.files {
		size += int64(1+len(f.name)+8) + f.size + 4
	}
	return ImageInfo{ID: imageID(m.index, m.term), Index: m.index, Term: m.term, Meta: m.meta, Bytes: size}
}

// imageID returns the name of an image. The order of names is the order of the log.
func imageID(index, term uint64) string { return fmt.Sprintf("%020d-%020d", index, term) }

// parseImageID is the inverse of imageID.
func parseImageID(id string) (index, term uint64, ok bool) {
	before, after, _ := strings.Cut(id, "-")
	index, _ = strconv.ParseUint(before, 10, 64) // for a malformed number, imageID returns another name
	term, _ = strconv.ParseUint(after, 10, 64)
	return index, term, imageID(index, term) == id
}
