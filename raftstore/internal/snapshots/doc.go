// Package snapshots decides when a group takes a snapshot, and provides the newest image as a backup.
//
// It bounds the bytes of the log, and lets the nodes of a cluster take their first snapshots at different times. The
// FSM writes the image (package fsm), and package images stores it.
package snapshots
