package host

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/wallog"
)

const (
	// headroomEvery is how often a node checks that its log's next file fits: often enough
	// to notice a disk that fills up at 50 MB/s while the log's current file has room.
	headroomEvery = time.Second
	// tightBytes of free space are so little that the file system's figure is not enough:
	// it ignores quotas and counts blocks reserved for root. The node then makes a file.
	tightBytes = 4 * wallog.HeadroomBytes
)

// WatchDisk ends the node when the log's next file does not fit on the disk, before a write
// fails: everything acknowledged is on the disk then.
func (h *Host) WatchDisk() {
	if h.Options.Log != nil || h.Options.Durability == identity.Memory {
		return
	}
	tick := time.NewTicker(headroomEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := h.headroom(); err != nil {
				h.Fatal(err)
				return
			}
		case <-h.Stop:
			return
		}
	}
}

// headroom returns an error when the disk has no room for the log's next file.
func (h *Host) headroom() error {
	disk, err := h.Options.FS.GetDiskUsage(h.Options.DataDir)
	if err == nil && disk.AvailBytes > tightBytes {
		return nil
	}
	err = wallog.Headroom(h.Options.DataDir)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %s has no room for the next file of the log, %d MiB (%w)", persistence.ErrDiskFullLive,
			h.Options.DataDir, wallog.HeadroomBytes>>20, err)
	}
	return nil // the log reports any other error itself
}

// UsedBytes returns the size of all files in the data directory. It stats every file.
func (h *Host) UsedBytes() int64 {
	type file struct {
		name  string
		bytes int64
	}
	seen := map[file]bool{} // an image shares files with the one before, under the same name
	var used int64
	var visit func(dir string)
	visit = func(dir string) {
		names, _ := h.Options.FS.List(dir) // a file that has just been removed counts for nothing
		for _, name := range names {
			path := h.Options.FS.PathJoin(dir, name)
			info, err := h.Options.FS.Stat(path)
			switch {
			case err != nil:
			case info.IsDir():
				visit(path)
			case !seen[file{name, info.Size()}]:
				seen[file{name, info.Size()}] = true
				used += info.Size()
			}
		}
	}
	visit(h.Options.DataDir)
	return used
}
