// Package bench measures weir and the rate limiters that people use today, on one machine, in one run.
//
// A [Target] is a contender: a [servers.Server], and the commands by which each workload asks it. [Contenders]
// makes targets by name. A [Load] describes how requests arrive, and for which keys. A [Scenario] compares cells,
// and a cell is one target under one load. The [Runner] works through the scenarios in four steps:
//
//   - It starts the servers of the scenario.
//   - It checks that each target really decides.
//   - It finds out how many requests fill a cell.
//   - It measures the cells in turn (A B C A B C), so that a temporary slowdown of the machine affects all of them.
//
// The Runner stops a server after the last scenario that needs it.
//
// # What it promises
//
//   - Comparisons are ratios. They are taken within one repetition, between neighbours in time, and given with
//     their spread. Absolute rates depend on the machine.
//   - Every counted reply is a decision. The generator reads each reply, expects one for each request, and fails
//     the cell at the first error. Before a scenario each target must admit, and must deny once its limit is used up.
//   - The latency of an open loop counts from the time at which a request was due, whether or not it could be sent
//     then. A stall therefore shows in every request that it delays (no coordinated omission).
//   - Server CPU, memory and disk writes come from the operating system, for all processes of the server. They
//     include saving the changes of the measured requests.
//   - The load generator reports its own CPU use, and the cells in which it was the limit.
//   - The package stops every process that it starts, by process id, also after a failure or an interrupt. It
//     still reports the results from before a failure.
//   - The Runner asks a cluster for its leader before and after each cell. It measures the cell again if the leader
//     changed or an election failed a request. The report says how often and why.
//   - The Runner refuses a plan that exceeds its time limit before it starts anything.
//
// # The load generator
//
// A swarm is a set of connections. Their requests are encoded once, and only the digits of keys change. Replies are
// read in one pass over their bytes. A closed loop has one goroutine per connection. An open loop has one thread,
// which sends the requests that are due and reads answers until the next request is due. Several threads would wake
// each other late on a machine with few processors, and timers of the Go runtime are late by up to a millisecond.
//
// [Snapshots] uses the same swarm to measure how writing a snapshot affects latency. A decision that overlaps with a
// snapshot counts to the snapshot, even if the decision began before it.
//
// # What it leaves to others
//
// [RedisBenchmark] makes closed loops with redis-benchmark, so that the rates do not depend on a client of this
// project. redis-benchmark has one thread and does not read the content of answers, so a slow prober runs beside it.
// A generator shares the machine with the servers; its CPU time does not count as theirs.
package bench
