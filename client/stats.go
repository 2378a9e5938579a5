package client

import "sync/atomic"

// Stats has counters since the client was made.
type Stats struct {
	Admitted, Denied int64 // decisions of all sources
	FromMemory       int64 // denials from memory, without a round trip
	FromFallback     int64 // decisions of the fallback
	Refused          int64 // commands that weir answered with an error
	Retries          int64 // commands that were resent
	Switches         int64 // switches to the fallback
	Probes           int64 // probes whether weir is reachable again
	Policies         int64 // policies whose limits are cached for outages
	Down             bool  // weir is not reached now
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

// Stats returns the counters of the client, for metrics.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{
		Admitted: n.admitted.Load(), Denied: n.denied.Load(), FromMemory: n.fromMemory.Load(), FromFallback: n.fromFallback.Load(),
		Refused: n.refused.Load(), Retries: n.retries.Load(), Switches: n.switches.Load(), Probes: n.probes.Load(), Policies: n.policies.Load(),
		Down: c.Down(),
	}
}
