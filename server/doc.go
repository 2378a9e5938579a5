// Package server listens for Redis clients on TCP ports, reads what they send, lets a session
// (package commands) carry it out, and writes the replies.
//
// # The wire
//
// A turn of a connection (conn) reads what has arrived, cuts it into commands (package resp),
// hands each to the session, and when the bytes are used up or commands.MaxBatch operations
// wait, settles: one call to the Limiter, all replies in one write. On a node that decides by
// itself a few goroutines run the turns of all connections (package evloop); a command that may
// take long, anything but a plain decision, gets a goroutine first. Where decisions wait for
// other nodes, each connection has a goroutine. There is no goroutine, channel or allocation per
// decision. Arguments are slices of the read buffer; they are valid until the session settles,
// which is always before the buffer is read into again.
//
// # What it promises
//
//   - Nothing is allocated for a length that is only declared. Memory follows
//     bytes that have arrived, up to limits that stand in limits.go, each with its
//     reason, and that are tighter before AUTH. An idle connection holds a few
//     kilobytes, one with an unfinished command at most twice what it sent.
//   - Work is linear in what was sent, however it is cut into packets.
//   - A pipeline of any length runs in bounded memory: while a client does not
//     read its replies it is not read from, and after the write timeout it is cut.
//     The replies that wait are at most 64 KiB and the one that crossed the mark.
//   - A frame that is none gets "-ERR Protocol error: ..." behind the answers that
//     were due, and the connection closes.
//   - A panic costs the connection it happened on.
//   - Shutdown loses no reply: what was decided is answered.
//
// # In a cluster
//
// A Limiter that is also a Replica makes this server one of several nodes. They
// show themselves to cluster clients as one shard whose primary is the leader,
// send operations on or answer MOVED (Config.Redirect). Reads are linearizable at each
// of them, or say how old they may be where the client sent READONLY. Raft itself is not
// known here.
//
// # What it leaves to others
//
// Deciding (package engine), keeping (package persistence), opening the
// listener, signals and flags (the program).
//
// # Where the wire differs from Redis
//
//   - The limits are far lower, and a command has a limit as a whole.
//   - Headers and arguments must end in CRLF exactly; Redis skips two bytes.
//   - A malformed header is refused at its first wrong byte, not at its end.
//   - Only inline commands are taken for HTTP; POST inside a frame is just an
//     unknown command.
//   - A client that does not read is held back, then cut by time. Redis buffers
//     for it and cuts it by size. Pushed messages (MONITOR, SUBSCRIBE) are the
//     exception: they come unasked, so they are bounded by size.
package server
