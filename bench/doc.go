// Package bench measures weir beside what people limit with today, on one
// machine, in one run.
//
// A Target is a contender: a Server and how each workload is said to it. A
// Scenario is a load: a workload, connections, pipeline depth, keys. The Runner
// starts every server, and for each scenario checks that each target really
// decides, finds out how many requests fill a cell of the wished length, and then
// measures the targets in turn, A B C A B C, so that a machine that slows down for
// a while slows down all of them. A Load makes the requests; the one here is
// redis-benchmark, so that nobody has to trust a client of ours for the rates.
//
// # What it promises
//
//   - Figures to compare are ratios: taken within one repetition, between
//     neighbours in time, and given with their spread. The rates themselves belong
//     to the machine.
//   - Every counted reply is a decision. redis-benchmark ends at the first error;
//     before a scenario each target must admit, and must deny once its limit is
//     used up; and while a cell runs, a slow prober of its own reads the replies and
//     says what share was admitted.
//   - Server CPU comes from the operating system, all threads, and includes saving
//     what the measured requests changed.
//   - What it starts it stops, by process id, also after a failure or an interrupt.
//   - A cluster is asked who leads before each cell and after it. A cell in which the
//     leader changed, or that ended in an outcome of an election, is measured again;
//     the report says how often and why.
//
// # The cluster's suite
//
// ClusterTargets are three processes on loopback, through the leader and through a
// follower, beside weir alone and one unreplicated Redis; the CPU of all nodes
// counts. ClusterGoals are the ratios it is run for. Snapshots then measures what
// writing a snapshot does to latency, with a load of its own, a swarm:
// redis-benchmark keeps to no rate. It is an open loop, whose latency counts from
// when a request was due, so that a stall shows in all requests it delays. A
// decision that was under way in a snapshot counts to it, wherever it began.
//
// # What it leaves to others
//
// redis-benchmark has one thread. Where that thread was busy all along, the report
// says so: the server could do more than the figure. Its latency is that of a whole
// pipeline, in a closed loop. A swarm shares its machine with the servers: its timers
// may be late by a millisecond, in a snapshot and out of it.
package bench
