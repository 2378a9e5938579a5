package wallog

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// Log is raft-wal without the wait for the removal of files, and with a mark of what was
// acknowledged. The library removes files while appends wait, and each costs a write of the
// file system's journal: together some tens of milliseconds behind each snapshot, in which
// nothing is decided.
type Log struct {
	*wal.WAL
	meta   *metadata
	files  *removals
	marker *marker
}

// Close ends the log and returns when nothing of it runs.
func (l *Log) Close() error {
	var err error
	switch {
	case l.WAL != nil:
		err = l.WAL.Close() // and the metadata
	case l.meta != nil:
		err = l.meta.Close()
	}
	if l.files != nil {
		l.files.close()
	}
	if l.marker != nil {
		err = errors.Join(err, l.marker.close())
	}
	return err
}

// GetLog reads an entry. It returns a CorruptError when another one, or none, is found in
// its place.
func (l *Log) GetLog(index uint64, entry *raft.Log) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library decodes what it finds
			err = &CorruptError{File: "while it was read", Entry: index, Reason: fmt.Sprint(p)}
		}
	}()
	err = l.WAL.GetLog(index, entry)
	var failed *fs.PathError
	switch {
	case errors.Is(err, raft.ErrLogNotFound), errors.Is(err, wal.ErrClosed), errors.As(err, &failed):
		return err
	case err != nil:
		return &CorruptError{File: "while it was read", Entry: index, Reason: err.Error()}
	case entry.Index != index:
		return &CorruptError{File: "while it was read", Entry: index, Reason: fmt.Sprintf("entry %d is in its place", entry.Index)}
	}
	return nil
}
