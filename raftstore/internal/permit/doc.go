// Package permit lets the groups of a process take their snapshots one after the other.
//
// Snapshots of many groups at once would compete with decisions for the disk and the processors.
package permit
