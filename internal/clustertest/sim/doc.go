// Package sim runs whole clusters in fake time and looks for violated guarantees.
//
// A simulation is three to six raftstore.Nodes in one testing/synctest bubble. The nodes are real, and so is the
// network transport of the Raft library. The environment of the nodes is simulated:
//
//   - a network that delays, holds back and resets (network.go, conn.go)
//   - disks that lose unsynced data at a crash (disk.go), and the replicated log on them (wal*.go)
//   - clocks that drift and step (clock.go)
//
// Clients ask any node, and record each answer with its true time (client.go). Meanwhile a plan drawn from a seed
// injects faults (plan.go). Then all faults end. Package ledger judges the histories of the clients and the state of
// the nodes (judge.go).
//
// With Config.Replicas the nodes are in zones, and each has replicas of some groups. Operators move replicas, and are
// interrupted at any step (moves.go). Calls between hosts about groups that are away are in the same simulated network:
// their connections come from Options.Dialer, as all others.
//
// Some races are too rare for chance. A plan forces them with failpoints (failpoint.go): a node waits between two steps
// while another is elected (fail_races.go), or a process has a false identity (fail_identity.go). The report names the
// guards of raftstore that a run has exercised (guards.go).
//
// A seed fixes the plan, not the run: goroutines in a bubble still run in parallel, and the Raft library draws its own
// timeouts. A seed that failed fails again often, but not always. Run it many times:
//
//	go test ./internal/clustertest/sim -run TestSeeds -sim.seed=S -sim.seeds=1 -count=20 -sim.log
//
// A crash ends a process at one instant. Its connections close, its clients receive nothing more, and its disk is the
// content that a CrashClone kept. The process itself cannot be killed, because it is part of the test process. It
// continues without a network, on a disk that is never read again, until it is closed. A fatal error may therefore
// return to it, because nothing that it does afterwards has an effect. Disk failures below the state images are the
// exception, because storage code panics there on return. The simulation crashes such a process at the operation that
// would fail.
//
// No goroutine may sleep while it holds a mutex. synctest does not count a goroutine that waits for a mutex as blocked,
// so fake time would stand still for ever.
package sim
