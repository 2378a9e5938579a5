package wallog_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/raftstore/wallog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reopened opens a log on an image, on a machine that has not rebooted since.
func reopened(t *testing.T, m image, sync bool, boot string) (*wallog.Log, error) {
	t.Helper()
	dir := memoryDir(t)
	m.write(t, dir)
	return wallog.OpenOn(dir, fs.New(), smallSegment, sync, boot)
}

// segmentName is the file of a segment.
func segmentName(base uint64, id int) string { return fmt.Sprintf("%020d-%016x.wal", base, id) }

// until returns the kept content up to an entry.
func (k *kept) until(last uint64) *kept {
	then := *k
	then.last, then.data = last, maps.Clone(k.data)
	return &then
}

// TestAnIndexThatLeadsElsewhere checks that an index with a valid checksum is refused if it does not match the
// entries.
func TestAnIndexThatLeadsElsewhere(t *testing.T) {
	images, _ := steps(t)
	m := images[len(images)-1]
	full := int(rotations(t, m)[0])
	b, dir := slices.Clone(m[segmentName(1, 0)]), memoryDir(t)
	used := func(b []byte) int { return (len(bytes.TrimRight(b, "\x00")) + 7) / 8 * 8 }
	begin, commit := used(images[full-1][segmentName(1, 0)]), used(b)-8
	index := commit - (4*full+7)/8*8
	b[index] ^= 8
	sum := crc32.Checksum(b[begin:commit], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(b[commit+4:], sum)
	m = maps.Clone(m)
	m[segmentName(1, 0)] = b
	m.write(t, dir)
	_, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
	require.ErrorContains(t, err, "the index does not match the entries")
}

// TestAFileIsMissing checks that only a segment file without acknowledged entries may be missing.
func TestAFileIsMissing(t *testing.T) {
	images, k := steps(t)
	m := images[len(images)-1]
	for name := range m {
		if filepath.Ext(name) != ".wal" {
			continue
		}
		lacking := maps.Clone(m)
		delete(lacking, name)
		_, err := reopened(t, lacking, true, "boot")
		require.ErrorIs(t, err, wal.ErrCorrupt, name)
		require.ErrorContains(t, err, "the file is missing", name)
	}
	full := rotations(t, m)[0]
	m = maps.Clone(images[full+1]) // the second segment has one entry
	m[wallog.MarkName] = images[full][wallog.MarkName]
	delete(m, segmentName(full+1, 1))
	w, err := reopened(t, m, true, "boot")
	require.NoError(t, err)
	then := k.until(full)
	require.NoError(t, then.holds(w))
	then.store(t, w, 1, 20)
	require.NoError(t, w.Close())
}

// TestTheSystemKeepsWhatAKillLeaves checks that appends without a sync survive a kill of the process, and are lost
// only with the machine.
func TestTheSystemKeepsWhatAKillLeaves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w, err := wallog.OpenOn(dir, fs.New(), smallSegment, false, "boot")
	require.NoError(t, err)
	k := &kept{first: 1, data: map[uint64]string{}}
	k.store(t, w, 1, 300)
	older := readImage(t, dir)[wallog.MarkName]
	k.store(t, w, 1, 200)
	m := readImage(t, dir)
	require.NoError(t, w.Close())
	for slot := range 2 { // the newer slot is lost
		if part := m[wallog.MarkName][slot*wallog.SlotStride:][:80]; !bytes.Equal(
			part, older[slot*wallog.SlotStride:][:80]) {
			clear(part)
		}
	}
	used := len(bytes.TrimRight(m[segmentName(1, 0)], "\x00"))
	m[segmentName(1, 0)][used-40] ^= 1
	_, err = reopened(t, m, false, "boot")
	require.ErrorIs(t, err, wal.ErrCorrupt)
	w, err = reopened(t, m, false, "next boot")
	require.NoError(t, err)
	require.NoError(t, k.until(1).holds(w))
	require.NoError(t, w.Close())
}

func TestCorruptErrorsNameThePlace(t *testing.T) {
	for want, e := range map[string]wallog.CorruptError{
		"log is corrupt (f): r":                        {File: "f", Reason: "r"},
		"log is corrupt (f at offset 1): r":            {File: "f", Reason: "r", Offset: 1},
		"log entry 1 is corrupt (f): r":                {File: "f", Reason: "r", Entry: 1},
		"log entry 2 is corrupt (f at offset 8192): r": {File: "f", Reason: "r", Entry: 2, Offset: 8192},
	} {
		require.EqualError(t, &e, want)
	}
}
