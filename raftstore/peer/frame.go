package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// A request is one frame, and its answer is another:
//
//	frame = length(4) number(8) method-or-status(1) payload
//
// length counts the bytes after it. Answers may come in any order.
const (
	frameHead = 9
	// maxFrameBytes bounds the memory that a frame of a peer can allocate. A typical batch of forwarded operations is
	// far shorter. A transaction of policies is longer than its text, because it carries the data of their time zones.
	maxFrameBytes = 8 << 20
	// MaxPayload is the longest payload of a call.
	MaxPayload = maxFrameBytes - frameHead
	// readBufferBytes is large enough to read a typical batch at once.
	readBufferBytes = 64 << 10
	// groupBufferBytes replaces readBufferBytes for a group that shares its hub with others. Most groups are idle, and
	// a longer frame is read past the buffer.
	groupBufferBytes = 4 << 10
)

var errFrame = errors.New("malformed frame")

type frame struct {
	number  uint64
	kind    byte
	payload []byte
}

// bufferFor returns the size of the read buffer for a connection.
func bufferFor(conn net.Conn) int {
	if c, ok := conn.(*trackedConn); ok && c.ofGroup {
		return groupBufferBytes
	}
	return readBufferBytes
}

func appendFrame(b []byte, f frame) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(frameHead+len(f.payload)))
	b = binary.LittleEndian.AppendUint64(b, f.number)
	return append(append(b, f.kind), f.payload...)
}

// readFrame reads a frame. The caller owns its payload.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [4 + frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < frameHead || n > maxFrameBytes {
		return frame{}, errFrame
	}
	f := frame{number: binary.LittleEndian.Uint64(head[4:]), kind: head[12], payload: make([]byte, n-frameHead)}
	_, err := io.ReadFull(r, f.payload)
	return f, err
}
