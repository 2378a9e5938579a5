package wallog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	walfs "github.com/hashicorp/raft-wal/fs"
)

// headroomName is the file by which Headroom tries whether a log file fits.
const headroomName = "headroom"

// HeadroomBytes is the size of the log's next file, which the log allocates at once.
const HeadroomBytes = segmentBytes

// Headroom returns an error when the log's next file does not fit on the disk of a
// directory. The log itself would notice only when its current file is full, which may be
// hours later. The caller must not call it twice at a time for one directory.
func Headroom(dir string) error {
	name := filepath.Join(dir, headroomName)
	if err := removed(name); err != nil { // a process that was killed may have left it
		return err
	}
	f, err := walfs.New().Create(dir, headroomName, HeadroomBytes)
	if err == nil {
		err = f.Close()
	}
	return errors.Join(err, removed(name))
}

// removed removes a file that may not be there.
func removed(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
