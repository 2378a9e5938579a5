package wallog

import (
	"errors"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft-wal/types"
)

// OpenOn opens a log as Open does, with files, a size of segments and a boot of the machine
// of one's own.
func OpenOn(dir string, files types.VFS, segmentBytes int, sync bool, boot string) (*Log, error) {
	return openOn(dir, files, settings{sync: sync, boot: boot, segmentBytes: segmentBytes, log: hclog.NewNullLogger()})
}

// MarkName is the file of the acknowledged mark.
const MarkName = markName

// SlotStride is where the second slot of the mark begins.
const SlotStride = slotStride

// Dir is where the log is.
func (l *Log) Dir() string { return filepath.Dir(l.meta.db.Path()) }

// ChangeState writes other metadata, as valid as those that it changes.
func ChangeState(dir string, change func(*types.PersistentState)) error {
	state, stable, err := readMeta(dir)
	if err != nil {
		return err
	}
	change(&state)
	m, err := openMeta(dir, state, stable)
	return errors.Join(err, m.Close())
}
