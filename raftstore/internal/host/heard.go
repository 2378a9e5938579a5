package host

import "time"

// Heard is the last status received from another node.
type Heard struct {
	Status
	At    time.Time
	lag   uint64        // entries that this node knew to be committed and the other node had not applied
	ahead time.Duration // how far its wall clock is ahead of this node's
	// WallNs is an upper bound of the other node's wall clock at the moment when this node's monotonic clock showed
	// RawNs.
	WallNs, RawNs int64
}

// WallNow returns an upper bound of the other node's wall clock now, unless that clock was stepped forward.
func (h *Heard) WallNow(rawNs int64) int64 {
	passedNs := max(rawNs-h.RawNs, int64(time.Since(h.At)))
	return h.WallNs + passedNs + passedNs/maxGain
}

// maxGain bounds what a clock gains on another one: one part in maxGain of the time that passes. NTP slews a clock by
// at most that much.
const maxGain = 2000

// hears compares another node's status with this node's state now. took is the round-trip time of the question.
func (p *Peers) hears(s Status, took time.Duration) Heard {
	_, committed := p.raft.Progress()
	return Heard{
		Status: s, At: time.Now(), WallNs: s.WallNs + int64(took), RawNs: p.of.Options.Source.MonotonicNs(),
		lag: behind(committed, s.Index), ahead: time.Duration(s.WallNs - p.of.Options.Source.WallNs()),
	}
}
