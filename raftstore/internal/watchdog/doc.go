// Package watchdog ends the process of a node in a state in which the node cannot continue. Such a state is a hung
// write to the log, a transfer of leadership that does not end, or the node's removal from the cluster.
package watchdog
