package host

import "time"

// Heard is what another node last said.
type Heard struct {
	Status
	At    time.Time
	lag   uint64        // entries that this node knew to be committed and the other had not applied
	ahead time.Duration // its wall clock, of this node's
	// WallNs is an upper bound of its wall clock at the moment when this node's monotonic
	// clock showed rawNs.
	WallNs, RawNs int64
}

// WallNow returns an upper bound of what the other node's wall clock shows now.
func (h *Heard) WallNow(rawNs int64) int64 {
	return h.WallNs + max(rawNs-h.RawNs, int64(time.Since(h.At)))
}

// hears compares another node's status with this node's, now. took is the round trip of
// the question.
func (p *Peers) hears(s Status, took time.Duration) Heard {
	_, committed := p.group.Progress()
	return Heard{
		Status: s, At: time.Now(), WallNs: s.WallNs + int64(took), RawNs: p.Source.MonotonicNs(),
		lag: behind(committed, s.Index), ahead: time.Duration(s.WallNs - p.Source.WallNs()),
	}
}
