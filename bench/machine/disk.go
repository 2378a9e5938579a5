package machine

import (
	"errors"
	"os"
	"slices"
	"time"
)

const (
	// fsyncs is enough for a median, and takes a fraction of a second on most disks.
	fsyncs = 51
	// fsyncBytes is one page: about as much as a log appends for a few decisions.
	fsyncBytes = 4096
	// LeastFsyncMicros is less than any disk takes for a durable write. Below it the files are in memory, or the system
	// does not wait for the disk.
	LeastFsyncMicros = 10
)

// FsyncMicros returns the median time to append a page to a file in dir durably, in microseconds.
func FsyncMicros(dir string) (micros float64, err error) {
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, fsyncBytes)
	var took []float64
	for range fsyncs {
		started := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(started))/float64(time.Microsecond))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
