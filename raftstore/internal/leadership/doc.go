// Package leadership manages this node's role as the leader of its group.
//
// Only the leader stamps entries with limiter time. A new leader continues from the last stamp, plus the time on its
// own monotonic clock since that entry arrived in its log. That is never more than has really passed. Only after a
// cold start, the wall clocks of a majority tell the passed time (coldstart.go). They are read relative to the last
// leader's note of them (walls.go).
//
// A leader transfers leadership before it closes, when a member gets no entries, and when its disk is much slower
// than another member's (handover.go, stalled.go, slow_disk.go).
//
// The package does not propose decisions: package pipeline does.
package leadership
