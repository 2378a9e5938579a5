// Package format determines the newest form of log entries that all members can read. So nodes of different versions
// of weir form one cluster during an upgrade.
//
// It promises that no entry is proposed that a member cannot read. Package wire defines the forms.
package format
