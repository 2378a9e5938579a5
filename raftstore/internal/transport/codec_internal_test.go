package transport

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMessagesAreEncodedAsByTheLibrary checks the encoding against new encoders and decoders, for messages that many
// goroutines send, after messages that are not valid. A message must share no memory with the bytes of its encoding,
// nor with the decoder.
func TestMessagesAreEncodedAsByTheLibrary(t *testing.T) {
	var tasks sync.WaitGroup
	for i := range 8 {
		tasks.Go(func() {
			for size := range 200 {
				m := raft.AppendEntriesRequest{Term: uint64(i), Entries: []*raft.Log{
					{Index: uint64(size), Data: bytes.Repeat([]byte{byte(i)}, 97*size)},
				}, RPCHeader: raft.RPCHeader{ID: []byte(fmt.Sprint(size))}}
				b, err := encode(&m)
				assertEqual(t, nil, err)
				var want []byte
				assertEqual(t, nil, codec.NewEncoderBytes(&want, newEncoding()).Encode(&m))
				assertEqual(t, want, b)
				if decode(b[:len(b)/2], new(raft.AppendEntriesRequest)) == nil {
					t.Error("half a message must not be decoded")
				}
				var got raft.AppendEntriesRequest
				assertEqual(t, nil, decode(b, &got))
				assertEqual(t, nil, decode(want, new(raft.AppendEntriesRequest)))
				clear(b)
				clear(want)
				assertEqual(t, m, got)
			}
		})
	}
	tasks.Wait()
}

// assertEqual is require.Equal for any goroutine.
func assertEqual(t *testing.T, want, got any) {
	if !assert.ObjectsAreEqual(want, got) {
		t.Errorf("want %v, got %v", want, got)
	}
}

// TestAnEncodingAllocatesLittle checks that encoders and decoders are used again.
func TestAnEncodingAllocatesLittle(t *testing.T) {
	m := raft.AppendEntriesResponse{Term: 7, LastLog: 9, Success: true}
	got := testing.AllocsPerRun(1000, func() {
		b, err := encode(&m)
		if err != nil || decode(b, new(raft.AppendEntriesResponse)) != nil {
			t.Error("no encoding")
		}
	})
	alone := testing.AllocsPerRun(1000, func() {
		var b []byte
		if codec.NewEncoderBytes(&b, newEncoding()).Encode(&m) != nil {
			t.Error("no encoding")
		}
	})
	require.Less(t, got, alone)
}
