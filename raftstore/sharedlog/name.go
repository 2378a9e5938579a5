package sharedlog

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/wallog"
)

// nameBytes is the length of a file that names a part: the name and its checksum, in hexadecimal, and a newline.
const nameBytes = 17

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Name returns the name of a group's part from a file in the group's data directory. It writes the file with a new
// name if it does not exist. A name is random: a directory that is moved away and back must not name the part of the
// directory that replaced it.
func Name(on vfs.FS, dir, file string) (uint32, error) {
	f, err := on.Open(on.PathJoin(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		name := uint32(rand.Int64N(1<<32-1)) + 1
		return name, writeName(on, dir, file, name)
	} else if err != nil {
		return 0, err
	}
	b, err := io.ReadAll(io.LimitReader(f, nameBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	raw, err := hex.DecodeString(strings.TrimSuffix(string(b), "\n"))
	if len(b) != nameBytes || err != nil || len(raw) != 8 || string(raw[4:]) != string(sumOf(raw[:4])) {
		return 0, &wallog.CorruptError{File: file, Reason: "it does not name a part of the shared log"}
	}
	return binary.BigEndian.Uint32(raw), nil
}

func sumOf(b []byte) []byte { return binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, castagnoli)) }

// writeName writes the file of a name atomically.
func writeName(on vfs.FS, dir, file string, name uint32) error {
	raw := binary.BigEndian.AppendUint32(nil, name)
	return persistence.WriteFile(on, dir, file, fmt.Sprintf("%x%x\n", raw, sumOf(raw)))
}
