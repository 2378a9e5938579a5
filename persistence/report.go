package persistence

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/latency"
)

// Report is how a data directory does.
type Report struct {
	Writes    latency.Snapshot // of flushes
	UsedBytes uint64           // what the state takes
	Disk      vfs.DiskUsage    // of the file system; zero: not known
}

// Report describes the data directory; false when there is none.
func (n *Node) Report() (r Report, ok bool) {
	if n.store == nil {
		return r, false
	}
	r.Writes, r.UsedBytes = n.writes.Snapshot(), n.store.db.Metrics().DiskSpaceUsage()
	// A file system that does not tell leaves zeros.
	r.Disk, _ = n.store.dir.fs.GetDiskUsage(n.store.dir.path)
	return r, true
}
