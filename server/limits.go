package server

import "time"

// Limits of connections. Package resp holds the limits of frames. All of them hold before authentication as well, and
// the server applies them before it allocates memory for a request.
const (
	// LargestMaxBulkBytes bounds the flag, so that no sum of lengths overflows and no single client may fill the
	// memory.
	LargestMaxBulkBytes = 16 << 20
	// flushBytes is the size of waiting replies at which they are written, so that a pipeline of any length runs in
	// bounded memory. One reply may exceed it.
	flushBytes = 64 << 10
	// keptReplyBytes is the largest reply buffer that a connection keeps for its next batch: a full flush and one reply
	// of ordinary size.
	keptReplyBytes = 2 * flushBytes

	// DefaultMaxOutputBytes bounds the pushed messages that wait for a client. It holds more than a second of messages
	// at a rate that a person can read.
	DefaultMaxOutputBytes = 1 << 20
	// DefaultWriteTimeout is the time for which a write waits for a client that does not read its replies. It is longer
	// than a short network failure, and short enough that a full server recovers by itself.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultAuthTimeout bounds the time until a client authenticates. Clients send AUTH first.
	DefaultAuthTimeout = 5 * time.Second
	// handshakeTimeout bounds a TLS handshake, which takes a few round trips.
	handshakeTimeout = 5 * time.Second
	// MaxHandshakes bounds the TLS handshakes in progress. A further one evicts a handshake of the address that has
	// most of them. Unfinished handshakes therefore cost a few megabytes and block no other client.
	MaxHandshakes = 256
	// rejectTimeout bounds the write of the reply to a rejected client. The send buffer of a new socket is empty, so
	// the write normally does not wait.
	rejectTimeout = 100 * time.Millisecond

	// The accept loop waits between acceptPauseMin and acceptPauseMax after an error, and doubles the pause each time.
	// Without free file descriptors it must neither spin nor sleep for long.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
	// keepAliveEvery and keepAliveCount bound the keep-alive probes that follow commands.KeepAliveIdle.
	keepAliveEvery = 100 * time.Second
	keepAliveCount = 3
	// sweepEvery is the interval at which idle connections release their buffers. A connection that stays idle from one
	// sweep to the next holds none.
	sweepEvery = 5 * time.Second
	// The server closes a connection only after the peer was quiet for lingerQuiet, or after lingerMax. If input is
	// unread at close, the kernel discards replies that are still in transit.
	lingerQuiet = 100 * time.Millisecond
	lingerMax   = 2 * time.Second
	// lingerPause separates two reads, each of up to lingerBytes, of discarded input. Without it a client that floods
	// an ended connection would occupy a processor. A megabyte in transit is read in a quarter of a second.
	lingerPause = time.Millisecond
	lingerBytes = 4 << 10
	// warnEvery is the interval between two log lines about attacks of one kind.
	warnEvery = time.Minute
)
