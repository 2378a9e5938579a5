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
	// headroomEvery is how often a node looks whether its log can go on: often enough
	// that a disk that fills up at 50 MB/s is noticed while the log's present file has room.
	headroomEvery = time.Second
	// tightBytes are free where the system's word is no longer enough: it does not know of
	// quotas, and counts what only root may use.
	tightBytes = 4 * wallog.HeadroomBytes
)

// watchDisk ends the node while everything it promised is on its disk, when the log's
// next file does not fit.
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

// headroom returns an error when the disk is full, as far as the log is concerned.
func (n *Node) headroom() error {
	disk, err := n.options.FS.GetDiskUsage(n.options.DataDir)
	if err == nil && disk.AvailBytes > tightBytes {
		return nil
	}
	err = wallog.Headroom(n.options.DataDir)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %s has no room for the next file of the log, %d MiB (%w)", persistence.ErrDiskFullLive, n.options.DataDir, wallog.HeadroomBytes>>20, err)
	}
	return nil // other errors are for the log to find
}
