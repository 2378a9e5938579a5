package persistence

import "github.com/weir-project/weir/limiter"

// Storage describes the data directory; false when there is none. Writes are flushes.
func (n *Node) Storage() (s limiter.Storage, ok bool) {
	if n.store == nil {
		return s, false
	}
	// A file system that does not tell leaves zeros.
	disk, _ := n.store.dir.fs.GetDiskUsage(n.store.dir.path)
	return limiter.Storage{
		Writes: n.writes.Snapshot(), UsedBytes: n.store.db.Metrics().DiskSpaceUsage(),
		FreeBytes: disk.AvailBytes, SizeBytes: disk.TotalBytes,
	}, true
}
