// Package resp reads and writes the Redis protocol, RESP2 and RESP3.
//
// A Framer cuts commands out of what a ReadBuffer has read, multibulk and inline, under
// Limits. A Writer appends replies in the protocol that the client asked for. An Error is an
// error reply as the client reads it.
//
// # What it promises
//
//   - Nothing is allocated for a length that is only declared: memory follows the bytes that
//     have arrived, up to the limits in limits.go.
//   - Work is linear in what was sent, however it is cut into packets.
//   - Arguments are slices of the read buffer. They are valid until the buffer is read into
//     again.
//
// # What it leaves to others
//
// Which commands exist and what they answer (package server).
package resp
