package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
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
	// sharedBufferBytes is large enough to read what a round of all groups sends at once.
	sharedBufferBytes = 64 << 10
	// groupBufferBytes is large enough to read a typical batch of a group at once. A longer frame is read past the
	// buffer.
	groupBufferBytes = 16 << 10
)

var errFrame = errors.New("malformed frame")

type frame struct {
	number  uint64
	kind    byte
	head    []byte // goes before the payload; nil in a frame that was read
	payload []byte
}

func appendFrame(b []byte, f frame) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(frameHead+len(f.head)+len(f.payload)))
	b = append(binary.LittleEndian.AppendUint64(b, f.number), f.kind)
	return append(append(b, f.head...), f.payload...)
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
