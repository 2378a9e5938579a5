// Package bench measures weir beside what people limit with today, on one
// machine, in one run.
//
// A Target is a contender: a Server and how each workload is said to it. A
// Scenario is a load: a workload, connections, pipeline depth, keys. The Runner
// starts every server, and for each scenario checks that each target really
// decides, finds out how many requests fill a cell of the wished length, and then
// measures the targets in turn, A B C A B C, so that a machine that slows down for
// a while slows down all of them. A Load makes the requests; the one here is
// redis-benchmark, so that nobody has to trust a client of ours.
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
//
// # What it leaves to others
//
// redis-benchmark has one thread. Where that thread was busy all along, the report
// says so: the server could do more than the figure. Its latency is that of a whole
// pipeline, in a closed loop.
package bench
