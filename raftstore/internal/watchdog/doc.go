// Package watchdog ends the process of a node that cannot go on: a write to the log that hangs, a
// handover of leadership that does not end, or a cluster that has removed this node. Waiting does
// not mend them: a restart does.
package watchdog
