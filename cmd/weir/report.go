package main

import "github.com/weir-project/weir/server"

var (
	_ server.StorageReporter   = (*replica)(nil)
	_ server.ConsensusReporter = (*replica)(nil)
	_ server.Archiver          = (*replica)(nil)
)

// Storage is the log's disk: it is what decisions wait for.
func (r *replica) Storage() (server.Storage, bool) {
	report := r.Report()
	return server.Storage{
		Writes: report.Writes, UsedBytes: uint64(r.UsedBytes()), FreeBytes: report.Disk.AvailBytes, SizeBytes: report.Disk.TotalBytes,
	}, true
}

func (r *replica) Consensus() server.Consensus {
	report := r.Report()
	return server.Consensus{
		LeaderChanges: report.LeaderChanges, Clamps: report.Clamps, Late: report.Late,
		ColdStarts: report.ColdStarts, Uncredited: report.Uncredited, DowntimeCredit: report.Credit,
		LogBytes: report.LogBytes, Snapshots: report.Snapshots, Standstill: report.Standstill,
		Evicted: report.Evicted,
	}
}
