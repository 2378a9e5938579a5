package persistence

import "github.com/weir-project/weir/limiter"

// Storage describes the data directory. It returns false without one. Writes are flushes.
func (n *Node) Storage() (s limiter.Storage, ok bool) {
	if n.store == nil {
		return s, false
	}
	// If the file system does not report its usage, the fields stay zero.
	disk, _ := n.store.dir.fs.GetDiskUsage(n.store.dir.path)
	return limiter.Storage{
		Writes: n.writes.Snapshot(), UsedBytes: n.store.db.Metrics().DiskSpaceUsage(),
		FreeBytes: disk.AvailBytes, SizeBytes: disk.TotalBytes,
	}, true
}
