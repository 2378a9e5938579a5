package service

import "sync/atomic"

// WireStats counts events of connections.
type WireStats struct {
	Connected atomic.Int64 // connections open now
	Accepted  atomic.Int64 // connections served since the start
	Rejected  atomic.Int64 // rejected by a connection limit, in all or per address
	Denied    atomic.Int64 // rejected by protected mode
	// Connections closed to admit others, by port.
	EvictedClients, EvictedHandshakes, EvictedHTTP, EvictedRLS atomic.Int64
	ProtocolErrors                                             atomic.Int64
	CrossProtocol                                              atomic.Int64 // HTTP sent to a RESP port
	AuthTimeouts                                               atomic.Int64
	BadHandshakes                                              atomic.Int64 // failed TLS handshakes
	// SlowReaders counts clients that were disconnected because they did not read their replies.
	SlowReaders   atomic.Int64
	PushOverflows atomic.Int64 // disconnected: their queue of pushed messages overflowed
	Panics        atomic.Int64
	AcceptErrors  atomic.Int64
	InputBytes    atomic.Int64
	OutputBytes   atomic.Int64
}

// RLSStats counts the answers to Envoy.
type RLSStats struct {
	Conns                 atomic.Int64 // open
	OK, OverLimit, Failed atomic.Int64 // calls
	Descriptors           Outcomes
	Unmatched             atomic.Int64 // descriptors without a policy or limit
	Limits                RLSLimits
}

// SourceStats counts the contents of a source of configuration, such as the policy files, since the start.
type SourceStats struct {
	Applied, Refused atomic.Int64
	Bad              atomic.Bool // the newest content is not in force, as a whole or in part
}

// Tell counts a content that was read.
func (s *SourceStats) Tell(inForce bool) {
	s.Bad.Store(!inForce)
	if inForce {
		s.Applied.Add(1)
	} else {
		s.Refused.Add(1)
	}
}
