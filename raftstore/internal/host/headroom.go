package host

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/wallog"
)

const (
	// headroomEvery is how often a node checks that its log's next file fits on the disk. It is often enough for a disk
	// that fills up at 50 MB/s while the current file has space.
	headroomEvery = time.Second
	// tightBytes is the free space below which the file system's figure is not enough, because it ignores quotas and
	// counts blocks reserved for root. The node then creates a file to find out.
	tightBytes = 4 * wallog.HeadroomBytes
	// diskTurn names the check of the disk, which the groups of a process take turns at.
	diskTurn = "disk"
)

// WatchDisk ends the process if the log's next file does not fit on the disk, before a write fails. All acknowledged
// decisions are on disk then. The groups of a process share the disk, and one check serves them all.
func (g *Group) WatchDisk() {
	if g.Options.Log != nil || g.Options.Durability == identity.Memory {
		return
	}
	var asking timers.Single // the file system may hang
	g.Every(headroomEvery, func() {
		if !g.Options.Host.loop.Due(diskTurn, headroomEvery) {
			return // another group has checked it
		}
		asking.Go(g.Go, func() {
			if err := g.headroom(); err != nil {
				g.Fatal(err)
			}
		})
	})
}

// headroom returns an error if the log's next file does not fit on the disk.
func (g *Group) headroom() error {
	disk, err := g.Options.FS.GetDiskUsage(g.Options.DataDir)
	if err == nil && disk.AvailBytes > tightBytes {
		return nil
	}
	err = wallog.Headroom(g.Options.DataDir)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %s has no space for the next segment of the log, %d MiB "+
			"(%w)", persistence.ErrDiskFullLive,
			g.Options.DataDir, wallog.HeadroomBytes>>20, err)
	}
	return nil // the log reports any other error itself
}

// UsedBytes returns the size of all files in the data directory of a group. It stats every file.
func UsedBytes(fs vfs.FS, dataDir string) int64 {
	type file struct {
		name  string
		bytes int64
	}
	seen := map[file]bool{} // an image shares files with the previous one, under the same name
	var used int64
	var visit func(dir string)
	visit = func(dir string) {
		names, _ := fs.List(dir) // a file that was just removed has no size
		for _, name := range names {
			path := fs.PathJoin(dir, name)
			info, err := fs.Stat(path)
			switch {
			case err != nil:
			case info.IsDir() && name == identity.GroupsName: // of other groups
			case info.IsDir():
				visit(path)
			case !seen[file{name, info.Size()}]:
				seen[file{name, info.Size()}] = true
				used += info.Size()
			}
		}
	}
	visit(dataDir)
	return used
}
