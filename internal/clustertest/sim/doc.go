// Package sim runs whole clusters in fake time and looks for broken promises.
//
// A simulation is three or five raftstore.Nodes in one testing/synctest bubble. The
// nodes are the real ones, with the Raft library's own network transport; what they
// stand on is simulated: a network that delays, holds back and resets (network.go,
// conn.go), disks that forget on a crash what was not synced (disk.go, and the
// replicated log on them, wal*.go), clocks that drift and step (clock.go).
// Clients ask any node and note what they heard and when, in true time (client.go,
// history.go). Meanwhile a plan drawn from a seed makes things fail (plan.go). Then
// everything heals, and the checks judge what the clients saw from outside
// (check_*.go), and what the nodes hold.
//
// Some races are too rare for chance. A plan forces them with failpoints (failpoint.go):
// a node waits between two steps while another is elected (fail_races.go), or a process is
// not what it says (fail_identity.go). The report names the guards of raftstore that a run
// has exercised (guards.go).
//
// A seed fixes the plan, not the run: in a bubble goroutines still run in
// parallel, and the Raft library draws its timeouts for itself. A seed that failed
// fails again often, not always; run it many times:
//
//	go test ./internal/clustertest/sim -run TestSeeds -sim.seed=S -sim.seeds=1 -count=20 -sim.log
//
// A crash ends a process at one instant: its connections are gone, what its clients
// have not heard they never hear, and its disk is what a CrashClone kept. The
// process itself cannot be killed, being part of this one. It lives on unseen,
// with no network and a disk nobody reads again, until it is closed. So a fatal
// error, too, may return to it: nothing it does from then on has an effect. The
// one exception are failures of the disk below the state images, where storage code
// panics on return: there the process is crashed at the operation that would fail.
//
// Nothing here may sleep with a mutex held: a goroutine that waits for a mutex is
// not at rest for synctest, and fake time would stand still for ever.
package sim
