package transport

import (
	"sync"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// The encoding is that of the library's own transport. Encoders and decoders are used again, because each allocates
// more than a heartbeat has bytes.
var (
	encoders = sync.Pool{New: func() any { return codec.NewEncoderBytes(new([]byte), newEncoding()) }}
	decoders = sync.Pool{New: func() any { return codec.NewDecoderBytes(none, &codec.MsgpackHandle{}) }}
	none     = []byte{}
)

// shortMessage is the expected size of a message without entries, and entryOverhead that of an entry without its data.
const shortMessage, entryOverhead = 256, 128

func newEncoding() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.TimeNotBuiltin = true
	return h
}

// encode returns the encoding of a message of the library.
func encode(message any) ([]byte, error) {
	e := encoders.Get().(*codec.Encoder)
	b := make([]byte, 0, shortMessage+lengthOf(message))
	e.ResetBytes(&b)
	if err := e.Encode(message); err != nil {
		return nil, err // the encoder may be damaged
	}
	unused := none
	e.ResetBytes(&unused) // the encoder must not keep the message in memory
	encoders.Put(e)
	return b, nil
}

// lengthOf returns about how much longer a message is than a short one.
func lengthOf(message any) (n int) {
	if m, ok := message.(*raft.AppendEntriesRequest); ok {
		for _, e := range m.Entries {
			n += len(e.Data) + entryOverhead
		}
	}
	return n
}

// decode decodes a message of the library.
func decode(b []byte, message any) error {
	d := decoders.Get().(*codec.Decoder)
	d.ResetBytes(b)
	if err := d.Decode(message); err != nil {
		return err // the decoder may be damaged
	}
	d.ResetBytes(none)
	decoders.Put(d)
	return nil
}
