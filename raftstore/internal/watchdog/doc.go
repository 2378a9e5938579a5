// Package watchdog ends the process of a node in a state that only a restart resolves: a hung write to the log, a
// transfer of leadership that does not end, or the node's removal from the cluster.
package watchdog
