// Package unitlog keeps the log of an exact sliding window in a chain of blocks in an arena: the
// instants at which units were admitted, and how many. A unit admitted alone costs five to seven
// bytes.
//
// A log drops units that have left the window from its front, whole blocks at a time. It can
// remove or insert units at any position. It records which units were stored already, so a change
// to a long log does not write the whole log again.
//
// The caller defines the window and the meaning of a unit.
package unitlog
