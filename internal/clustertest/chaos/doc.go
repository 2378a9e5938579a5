// Package chaos injects faults into running weir processes and judges the answers that clients saw.
//
// It starts real server processes with real disks on loopback, and puts a TCP proxy into every directed link between
// them. Many clients ask for decisions while the harness kills, pauses, partitions and slows nodes, fills and damages
// their disks, and moves their clocks. The clients record every answer with their monotonic clock. Pure functions
// judge the histories afterwards. They trust no statement of a server about itself.
//
// # What is checked
//
// Package ledger judges the histories. After all nodes were killed and restarted, each limit that never refills must
// still count every acknowledged grant. The other checks:
//
//   - [Useful]: outside the seconds without a leader, nearly everything that could be admitted was admitted. A
//     limiter that denies every request passes no gate.
//   - Events: readers that go on at other nodes by their cursors see the same log, and package ledger judges it. A run
//     of five minutes with -chaos.spenders=20 crosses 100,000 thresholds.
//   - Exactly once: a command repeated with its ID gets its first answer again, unless that was a denial, and takes
//     nothing more.
//
// # Words
//
// An operation has one of three outcomes: answered, not applied, or unknown. TRYAGAIN, CLUSTERDOWN, MOVED, OVERLOADED,
// LOADING and a node that was never reached mean not applied. UNKNOWN, a lost connection and a missing answer mean
// unknown. An unknown operation counts as not granted for upper bounds of grants, and as possibly granted for lower
// bounds.
//
// # Seeds
//
// A seed fixes the schedule: each fault, its time, its duration, and the seed of its choices. The cluster decides
// which node leads at that moment. A seed therefore repeats a schedule exactly, but not an outcome.
//
// # Several Raft groups
//
// With --groups N in the arguments of the nodes the same judges see the same traffic, whose keys spread over the
// groups. A second is healthy if the nodes lead all groups. Some faults concern one group: a busy leader, and a node
// that is removed from it. A policy change reaches the groups one after the other, so [ledger.LinearizableByGroup]
// judges them.
//
// TestShared changes what concerns all groups under faults. There two clients race on each kind of item, and an
// answered change must be in force in every group.
//
// With --replicas R the groups are on a part of the nodes. Then an operator also moves replicas under kills, and gives
// a group another replica for one that is lost. The nodes that have a group compare their states of it.
// TestGrowAndShrink grows a cluster, and takes its founders out.
//
// # What it leaves to others
//
// Tests in fake time with a file system in memory cover power loss, torn writes and disk errors at a chosen operation.
// A kill -9 keeps the data that the kernel has.
package chaos
