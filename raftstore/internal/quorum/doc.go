// Package quorum confirms that the state of a leader is still the newest: that no later leader was
// elected before those who wait had asked. This is the round of heartbeats of ReadIndex (Ongaro,
// dissertation, section 6.4), with questions of weir's own in place of heartbeats. All who wait
// share a round.
package quorum
