// Package leadership is this node as the leader of its group, or as one that may become it.
//
// Limiter time: only the leader stamps. A new leader goes on from the last stamp, by the time that
// has passed on its own monotonic clock since that entry arrived in its log, which is never more
// than has really passed. After a cold start (coldstart.go), and only then, the wall clocks of a
// majority say how much time has passed, by what the last leader noted of them (walls.go).
//
// A leader hands over before it closes, when a member gets no entries, and when its disk is much
// slower than that of another member (handover.go, stalled.go, slow_disk.go).
package leadership
