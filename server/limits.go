package server

import "time"

// Every limit of the wire. They hold before authentication too; what the client
// sends is measured against them before anything is allocated for it.
const (
	// LargestMaxBulkBytes bounds the flag, so that no sum of lengths overflows and
	// one client cannot be allowed to fill the memory.
	LargestMaxBulkBytes = 16 << 20
	// flushBytes is how many bytes of replies are written at the latest, so that a
	// pipeline of any length is answered in bounded memory. One reply may exceed it.
	flushBytes = 64 << 10
	// keptReplyBytes is the largest reply buffer a connection keeps for its next
	// batch: a full flush and one reply of ordinary size.
	keptReplyBytes = 2 * flushBytes

	// DefaultMaxOutputBytes bounds pushed messages waiting for a client that does
	// not read: more than a second of them at a rate a person can look at.
	DefaultMaxOutputBytes = 1 << 20
	// DefaultWriteTimeout is how long a write may wait for a client that does not
	// read its replies before the client is cut: longer than a hiccup of the
	// network, short enough that a full server recovers by itself.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultAuthTimeout is how long a client that must authenticate may take to do
	// so: clients send AUTH first thing.
	DefaultAuthTimeout = 5 * time.Second
	// handshakeTimeout bounds a TLS handshake: a few round trips.
	handshakeTimeout = 5 * time.Second
	// MaxHandshakes bounds the TLS handshakes under way. One more ends one of the
	// client that has most of them, so that strangers who begin and never end cost a
	// few megabytes and keep nobody out.
	MaxHandshakes = 256
	// rejectTimeout bounds the write of the line a refused client gets. The socket
	// is new and empty, so the write never waits unless something is wrong.
	rejectTimeout = 100 * time.Millisecond

	// The accept loop waits this long after an error, doubling from the first to
	// the second: out of file descriptors it must neither spin nor sleep for long.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
	// keepAliveEvery and keepAliveCount bound the probes behind commands.KeepAliveIdle.
	keepAliveEvery = 100 * time.Second
	keepAliveCount = 3
	// sweepEvery is how often idle connections are asked to give their buffers
	// back: one that stays quiet from one sweep to the next holds none.
	sweepEvery = 5 * time.Second
	// A connection is closed only after the peer has been quiet for lingerQuiet or
	// lingerMax has passed: closing over unread input makes the kernel throw away
	// replies that are still on their way.
	lingerQuiet = 100 * time.Millisecond
	lingerMax   = 2 * time.Second
	// lingerPause lies between two reads, of up to lingerBytes, of what is thrown away: who
	// floods a connection that has ended would keep a processor busy otherwise, and other
	// clients waiting. A megabyte that was still on its way is read in a quarter of a second.
	lingerPause = time.Millisecond
	lingerBytes = 4 << 10
	// warnEvery is the pause between two log lines about attacks of one kind.
	warnEvery = time.Minute
)
