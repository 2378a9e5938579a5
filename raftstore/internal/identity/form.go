package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/weir-project/weir/raftstore/internal/failure"
)

// The identity file is JSON whose last member is the CRC-32C of everything before it.
const (
	sumMember = `,"Checksum":"`
	sumEnd    = `"}`
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns the identity in the form of its file.
func (id Identity) encode() ([]byte, error) {
	id.Version = version
	b, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	body := b[:len(b)-1] // without the closing brace
	return fmt.Appendf(bytes.Clone(body), "%s%08x%s", sumMember, crc32.Checksum(body, castagnoli), sumEnd), nil
}

// decodeIdentity decodes a file that encode wrote. It returns ErrNewer for another version, and ErrDamaged for anything
// else.
func decodeIdentity(b []byte) (id Identity, err error) {
	i := max(bytes.LastIndex(b, []byte(sumMember)), 0)
	if string(b[i:]) != fmt.Sprintf("%s%08x%s", sumMember, crc32.Checksum(b[:i], castagnoli), sumEnd) {
		return id, fmt.Errorf("%w (the checksum of %s is wrong or missing)", failure.ErrDamaged, FileName)
	}
	if err := json.Unmarshal(append(bytes.Clone(b[:i]), '}'), &id); err != nil {
		return Identity{}, fmt.Errorf("%w (%s: %w)", failure.ErrDamaged, FileName, err)
	}
	if id.Version < oldest || id.Version > version {
		return Identity{}, fmt.Errorf("%s: %w: format %d, this one reads %d to %d", FileName, failure.ErrNewer,
			id.Version, oldest, version)
	}
	return id, nil
}
