// Package quorum confirms that a leader's state is still the newest: no later leader was elected before the waiting
// callers asked. It implements the heartbeat round of ReadIndex (Ongaro, dissertation, section 6.4) with weir's own
// term questions. A leader lease would need no round, but would depend on clocks. All callers that wait share a round.
//
// The package does not read state. Its callers decide from which state they answer.
package quorum
