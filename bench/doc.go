// Package bench measures weir beside what people limit with today, on one
// machine, in one run.
//
// A Target is a contender: a [servers.Server] and how each workload is said to it; Contenders
// makes them by name. A Load is how requests arrive, and for what. A Scenario compares
// cells, each a target under a load. The Runner starts the servers of a scenario, checks
// that each target really decides, finds out how many requests fill a cell, and then
// measures the cells in turn, A B C A B C, so that a machine that slows down for a while
// slows down all of them. Servers stop behind the last scenario that needs them.
//
// # What it promises
//
//   - Figures to compare are ratios: taken within one repetition, between
//     neighbours in time, and given with their spread. The rates themselves belong
//     to the machine.
//   - Every counted reply is a decision: it is read, there is one for each request, and
//     a single error fails the cell. Before a scenario each target must admit, and must
//     deny once its limit is used up.
//   - An open loop's latency counts from when a request was due, whether it could be sent
//     or not, so that a stall shows in all requests it delays.
//   - Server CPU, memory and disk come from the operating system, of all processes, and
//     include saving what the measured requests changed.
//   - The load generator says what it used itself, and where it was the limit.
//   - What it starts it stops, by process id, also after a failure or an interrupt. What
//     it measured before a failure it still reports.
//   - A cluster is asked who leads before each cell and after it. A cell in which the
//     leader changed, or that ended in an outcome of an election, is measured again;
//     the report says how often and why.
//   - A plan that does not fit its time limit is refused before anything starts.
//
// # The load generator
//
// A swarm is connections with requests encoded once, of which only the digits of keys
// change, and replies read in one pass over their bytes. A closed loop is a goroutine a
// connection. An open loop is one thread, which sends what is due and takes answers until
// the next is: threads that wake each other are late where the system has few processors
// for them, and the runtime's timers by up to a millisecond. Snapshots uses the same swarm
// to measure what writing a snapshot does to latency; a decision that was under way in a
// snapshot counts to it, wherever it began.
//
// # What it leaves to others
//
// RedisBenchmark makes closed loops with the program that everybody has, so that nobody
// has to trust a client of ours for the rates. It has one thread, and reads no answers;
// a slow prober beside it does. A generator shares its machine with the servers: what it
// uses is not theirs.
package bench
