package wallog

import (
	"errors"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft-wal/types"
)

// OpenOn opens a log like Open, with the given files, segment size and boot ID.
func OpenOn(dir string, files types.VFS, segmentBytes int, sync bool, boot string) (*Log, error) {
	return openOn(dir, files, settings{sync: sync, boot: boot, segmentBytes: segmentBytes, log: hclog.NewNullLogger()})
}

// MarkName is the file of the acknowledged mark.
const MarkName = markName

// SlotStride is the offset of the second slot of the mark.
const SlotStride = slotStride

// Dir returns the directory of the log.
func (l *Log) Dir() string { return filepath.Dir(l.meta.db.Path()) }

// ChangeState writes other metadata with a valid checksum.
func ChangeState(dir string, change func(*types.PersistentState)) error {
	state, stable, err := readMeta(dir)
	if err != nil {
		return err
	}
	change(&state)
	m, err := openMeta(dir, state, stable)
	return errors.Join(err, m.Close())
}
