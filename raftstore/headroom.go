package raftstore

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/weir-project/weir/persistence"
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

// watchDisk ends the node when the log's next file does not fit on the disk, before a write
// fails: everything acknowledged is on the disk then.
func (n *Node) watchDisk() {
	if n.options.Log != nil || n.options.Durability == Memory {
		return
	}
	tick := time.NewTicker(headroomEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := n.headroom(); err != nil {
				n.fatal(err)
				return
			}
		case <-n.stop:
			return
		}
	}
}

// headroom returns an error when the disk has no room for the log's next file.
func (n *Node) headroom() error {
	disk, err := n.options.FS.GetDiskUsage(n.options.DataDir)
	if err == nil && disk.AvailBytes > tightBytes {
		return nil
	}
	err = wallog.Headroom(n.options.DataDir)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %s has no room for the next file of the log, %d MiB (%w)", persistence.ErrDiskFullLive, n.options.DataDir, wallog.HeadroomBytes>>20, err)
	}
	return nil // the log reports any other error itself
}
