// Package wire is how nodes write operations and decisions to each other: in the
// entries of the replicated log, and in what a follower forwards to the leader.
//
// An entry is a header of fixed length, filled in when the entry is proposed, and
// a body to which calls are appended as they come:
//
//	entry  = header body
//	body   = call ...
//	call   = uvarint(operations*2 + atomic) op ...
//	op     = code flags key [limit] [cost] [wait] [ttl] [id] [text] [calendar] [incr] [pairs] [policy] [script]
//
// Integers are varints, slices carry their length before them. A limit that
// equals that of the operation before it is not repeated. Decoding checks every
// length, so that no byte sequence makes it panic or allocate more than it reads.
package wire
