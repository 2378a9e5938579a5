package wallog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	walfs "github.com/hashicorp/raft-wal/fs"
)

// headroomName is the file that Headroom creates to test whether a log file fits on the disk.
const headroomName = "headroom"

// HeadroomBytes is the size of the log's next file, which the log allocates at its creation.
const HeadroomBytes = segmentBytes

// Headroom returns an error if the log's next file does not fit on the disk of a directory. The log itself would
// notice only when its current file is full, which may be hours later. Callers must not run it concurrently for one
// directory.
func Headroom(dir string) error {
	name := filepath.Join(dir, headroomName)
	if err := removed(name); err != nil { // a killed process may have left it
		return err
	}
	f, err := walfs.New().Create(dir, headroomName, HeadroomBytes)
	if err == nil {
		err = f.Close()
	}
	return errors.Join(err, removed(name))
}

// removed removes a file, if it exists.
func removed(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
