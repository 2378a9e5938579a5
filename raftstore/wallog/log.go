package wallog

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// Log is raft-wal with an acknowledged mark, and with file removal in the background. The library removes files while
// appends wait, and each removal costs a write of the file system's journal. Together they would stop decisions for
// some tens of milliseconds after each snapshot.
type Log struct {
	*wal.WAL
	meta   *metadata
	files  *removals
	marker *marker
}

// Close closes the log and waits for its goroutines.
func (l *Log) Close() error {
	var err error
	switch {
	case l.WAL != nil:
		err = l.WAL.Close() // closes the metadata, too
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

// GetLog reads an entry. It returns a CorruptError if the entry cannot be decoded, or if another entry is in its
// place.
func (l *Log) GetLog(index uint64, entry *raft.Log) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library may panic on damaged bytes
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
		return &CorruptError{File: "while it was read", Entry: index, Reason: fmt.Sprintf("entry %d is in its place",
			entry.Index)}
	}
	return nil
}
