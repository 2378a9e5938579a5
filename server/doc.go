// Package server accepts Redis clients on TCP ports, reads their commands and writes the replies. Sessions of package
// commands execute the commands.
//
// # Connections
//
// A read cycle of a connection reads the bytes that have arrived, and package resp cuts them into commands. The session
// executes each command or defers its operations. When the bytes are used up or commands.MaxBatch operations wait, one
// call to the Limiter decides them. All their replies are sent in one write.
//
// On a server that runs alone, a few goroutines run the read cycles of all unencrypted connections (package evloop). A
// command that may block detaches its connection from these goroutines first. TLS connections have a goroutine each,
// and so has every connection of a cluster node, because decisions there wait for other nodes. A decision costs no
// goroutine, channel or allocation.
//
// Arguments are slices of the read buffer. They are valid until the session has decided its batch, which precedes the
// next read into the buffer.
//
// # What it promises
//
//   - The server allocates nothing for a length that is only declared. Memory follows the bytes that have arrived, up
//     to the limits in limits.go and in package resp. These limits are tighter before AUTH. An idle connection holds a
//     few kilobytes. The read buffer of a connection has at most 64 KiB, or twice the bytes of an unfinished command
//     that needs more.
//   - The work is linear in the bytes received, whichever way packets divide them.
//   - A pipeline of any length runs in bounded memory. While a client does not read its replies, the server does not
//     read from it. After the write timeout the server closes the connection. At most 64 KiB of replies wait, plus the
//     reply that exceeded this mark.
//   - A malformed frame is answered with "-ERR Protocol error: ..." after the replies that were due. The connection
//     then closes.
//   - A panic closes the connection on which it occurred, and no other.
//   - Shutdown loses no reply: every decision is answered.
//
// # In a cluster
//
// A Limiter that is also a Replica makes this server one node of a cluster. The nodes appear to cluster clients as one
// shard whose primary is the leader. With several Raft groups, the leader of each group is the primary of the group's
// slots. A follower forwards operations to the leader or answers MOVED (Config.Redirect). Reads are linearizable on
// every node. After READONLY, reads are stale and report their age. The server does not know Raft.
//
// # What it leaves to others
//
// Package engine decides. Package persistence stores the state. The program opens the listeners and handles signals and
// flags.
//
// # Differences from Redis
//
//   - The limits are far lower, and a command has a limit as a whole.
//   - Headers and arguments must end in CRLF exactly. Redis skips two bytes.
//   - A malformed header is refused at its first wrong byte, not at its end.
//   - Only an inline command can be mistaken for HTTP. POST inside a frame is an unknown command.
//   - Back-pressure holds a client that does not read, then a timeout closes its connection. Redis buffers the replies
//     and closes the connection by size. Pushed messages (MONITOR, SUBSCRIBE) are the exception: the client did not
//     request each of them, so their size is bounded.
//
// DESIGN.md explains the decisions and lists the invariants with their tests.
package server
