// Package wire encodes the operations and decisions that nodes exchange: in log entries, and in the batches that a
// follower forwards to the leader.
//
// An entry is a header of fixed length and a body. The header is filled in when the entry is proposed. Calls are
// appended to the body as they arrive:
//
//	entry  = header body
//	body   = call ...
//	call   = uvarint(operations*2 + atomic) op ...
//	op     = code flags key [limit] [cost] [wait ttl] [id] [text] [extras]
//	extras = bits [calendar] [incr] [pairs] [policy] [script] [from]
//
// Integers in a body are varints, and the length of a slice precedes it. A limit that equals the limit before it is
// not repeated. Decoding checks every length, so malformed bytes cannot make it panic. The memory that it allocates
// is proportional to the bytes that it reads.
//
// The package does not decide operations. It only checks that the engine can compute with them (Valid).
// Connections between nodes and their handshake are in package peer.
package wire
