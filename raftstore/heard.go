package raftstore

import "time"

// heard is what another node last said.
type heard struct {
	status
	at    time.Time
	lag   uint64        // entries that this node knew to be committed and the other had not applied
	ahead time.Duration // its wall clock, of this node's
	// wallNs is an upper bound of its wall clock at the moment when this node's monotonic
	// clock showed rawNs.
	wallNs, rawNs int64
}

// wallNow returns an upper bound of what the other node's wall clock shows now.
func (h *heard) wallNow(rawNs int64) int64 {
	return h.wallNs + max(rawNs-h.rawNs, int64(time.Since(h.at)))
}

// hears compares another node's status with this node's, now. took is the round trip of
// the question.
func (p *peers) hears(s status, took time.Duration) heard {
	_, committed := p.group.progress()
	return heard{
		status: s, at: time.Now(), wallNs: s.WallNs + int64(took), rawNs: p.source.MonotonicNs(),
		lag: behind(committed, s.Index), ahead: time.Duration(s.WallNs - p.source.WallNs()),
	}
}
