// Package snapshots decides when a group takes a snapshot, and hands the newest one out as a backup.
package snapshots
