package machine

import (
	"errors"
	"os"
	"slices"
	"time"
)

const (
	// fsyncs are enough for a median, and take a fraction of a second on most disks.
	fsyncs = 51
	// fsyncBytes is one page: about what a log appends for a few decisions.
	fsyncBytes = 4096
	// LeastFsyncMicros is less than any disk takes to make something durable: below
	// it the files are in memory, or the system does not wait for the disk.
	LeastFsyncMicros = 10
)

// FsyncMicros is how long it takes to append a page to a file in dir and have it on
// disk, in microseconds, median.
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
