// Package resp reads the Redis protocol, RESP2 and RESP3, and writes replies.
//
// A Framer cuts commands out of the bytes of a ReadBuffer, multibulk and inline, within Limits. A Writer receives
// replies: a Wire appends them in the protocol version that the client selected, and Values collects them as values of
// Go. An Error is an error reply as the client reads it.
//
// # What it promises
//
//   - Nothing is allocated for a length that is only declared. Memory follows the bytes that have arrived, up to the
//     limits in limits.go.
//   - The work is linear in the bytes received, whichever way packets divide them.
//   - Arguments are slices of the read buffer. They are valid until the next read into the buffer.
//
// # What it leaves to others
//
// Package server/commands defines the commands and their replies.
package resp
