// Package events keeps the log of events of a table: what clients want to be told, in the order in which it was
// decided.
//
// The log is a part of the replicated state. A cursor numbers each event, from 1. The log has a bound in bytes, and
// drops its oldest events to stay within it. So the same events under the same bound leave the same log.
//
// The package leaves to others when an event is written, and when the log is stored.
package events
