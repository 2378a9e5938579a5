package client

import "sync/atomic"

// Stats counts since the client was made.
type Stats struct {
	Admitted, Denied int64 // decisions, whoever made them
	FromMemory       int64 // denials that weir was not asked for
	FromFallback     int64 // decisions that were made without weir
	Refused          int64 // commands that weir answered an error to
	Retries          int64 // commands sent again
	Switches         int64 // times weir was lost
	Probes           int64 // looks whether it is back
	Policies         int64 // whose limits are known for outages
	Down             bool  // it is lost now
}

type counters struct {
	admitted, denied, fromMemory, fromFallback, refused, retries, switches, probes, policies atomic.Int64
}

func (c *counters) count(d *Decision) {
	if d.Allowed {
		c.admitted.Add(1)
	} else {
		c.denied.Add(1)
	}
	switch d.Source {
	case FromMemory:
		c.fromMemory.Add(1)
	case FromFallback:
		c.fromFallback.Add(1)
	}
}

// Stats is what the client has done so far, for metrics.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{
		Admitted: n.admitted.Load(), Denied: n.denied.Load(), FromMemory: n.fromMemory.Load(), FromFallback: n.fromFallback.Load(),
		Refused: n.refused.Load(), Retries: n.retries.Load(), Switches: n.switches.Load(), Probes: n.probes.Load(), Policies: n.policies.Load(),
		Down: c.Down(),
	}
}
