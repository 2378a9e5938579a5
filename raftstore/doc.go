// Package raftstore is a limiter that several nodes keep together: the table of
// package engine under consensus.
//
// A decision travels like this. Callers append their operations to the batch that
// is open (queue.go). When nothing is under way, or enough has gathered (flight.go),
// the pump takes what there is, stamps it once with limiter time and proposes it as
// one entry of the Raft log (propose.go); on a follower it sends it to the leader
// instead (forward.go). Every node applies committed entries to its own table in the
// same order (machine.go), and the node that proposed an entry finds the answers
// there and wakes its callers.
//
// Limiter time (reign.go): only the leader stamps. A new leader goes on from the
// last stamp, by the time that has passed on its own monotonic clock since that entry
// arrived in its log (arrivals.go), which is never more than has really passed. An
// entry says for which term its stamp holds and is void in any other. After a cold
// start (coldstart.go), and only then, the wall clocks of a majority say how much time
// has passed, by what the last leader noted of them (walls.go).
//
// Denials (deny.go) change nothing and need no log: the leader answers them from
// the state it has applied, once a majority, asked after the request arrived,
// confirmed that nobody was elected after it (confirm.go).
//
// Reads (readindex.go) need no log either: a follower asks the leader for its read index
// and answers when it has applied it. freshness.go knows how old a read is that asks
// nobody.
//
// State (machine_snapshot.go, images.go): the table lives in memory; a snapshot
// writes what changed to package persistence's images, and a restart loads the
// newest image and replays the log behind it.
//
// What the Raft library needs to be safe is in transport.go, logstore.go and
// watchdog.go; each says which defect it is there for.
package raftstore
