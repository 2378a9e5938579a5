package service

import "sync/atomic"

// WireStats counts what happens below the commands.
type WireStats struct {
	Connected atomic.Int64 // connections open now
	Accepted  atomic.Int64 // connections served since the start
	Rejected  atomic.Int64 // turned away: max clients, in all or from one source
	Denied    atomic.Int64 // turned away: protected mode
	// Evicted ones were cut to make room for others, on each port.
	EvictedClients, EvictedHandshakes, EvictedHTTP, EvictedRLS atomic.Int64
	ProtocolErrors                                             atomic.Int64
	CrossProtocol                                              atomic.Int64 // HTTP sent to a RESP port
	AuthTimeouts                                               atomic.Int64
	BadHandshakes                                              atomic.Int64 // TLS that did not come about
	SlowReaders                                                atomic.Int64 // cut: they did not read their replies
	PushOverflows                                              atomic.Int64 // cut because pushed messages piled up
	Panics                                                     atomic.Int64
	AcceptErrors                                               atomic.Int64
	InputBytes                                                 atomic.Int64
	OutputBytes                                                atomic.Int64
}

// RLSStats counts what Envoys were told.
type RLSStats struct {
	Conns                 atomic.Int64 // open
	OK, OverLimit, Failed atomic.Int64 // calls
	Descriptors           Outcomes
	Unmatched             atomic.Int64 // Descriptors without a policy
}
