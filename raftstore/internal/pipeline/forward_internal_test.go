package pipeline

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestForwardedCallsAreOne checks that adjacent forwarded calls merge unless they are atomic, and that each answer
// stays at the position of its call.
func TestForwardedCallsAreOne(t *testing.T) {
	var (
		e    wire.Encoder
		body []byte
	)
	call := func(n int, atomic bool) {
		ops := make([]engine.Op, n)
		for i := range ops {
			ops[i] = oneBucket
		}
		body = e.Call(body, ops, atomic)
	}
	call(1, false)
	call(2, false)
	call(3, true)
	call(1, true)
	call(2, false)
	call(2, false)
	var f forwarded
	require.NoError(t, f.read(body))
	type part struct {
		from, ops int
		atomic    bool
	}
	var parts []part
	for _, c := range f.calls {
		parts = append(parts, part{c.from, c.end - c.from, c.atomic})
	}
	require.Equal(t, []part{{0, 3, false}, {3, 3, true}, {6, 1, true}, {7, 4, false}}, parts)
	require.Len(t, f.ops, 11)

	require.Error(t, f.read(body[:len(body)-1]))
	for _, tail := range []string{"\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		require.ErrorIs(t, f.read(append(slices.Clone(body), tail...)), wire.ErrMalformed,
			"the decoder must not take the tail %q for the end", tail)
	}
}

// TestABodyGoesIntoTheLogAsItIs checks when the leader puts a forwarded body into the log without looking at each call.
func TestABodyGoesIntoTheLogAsItIs(t *testing.T) {
	dry, asks := oneBucket, oneBucket
	dry.Dry = true
	asks.ID, asks.Asks = []byte("id"), engine.Fingerprint{1}
	for _, test := range []struct {
		name   string
		calls  [][]engine.Op
		agreed byte
		denied int64 // calls to check for denials
		want   bool
	}{
		{"calls", [][]engine.Op{{oneBucket}, {oneBucket, dry}}, wire.Oldest, 0, true},
		{"a call that changes nothing", [][]engine.Op{{dry}}, wire.Oldest, 0, false},
		{"likely denials", [][]engine.Op{{oneBucket}}, wire.Oldest, 1, false},
		{"a form that some member does not read", [][]engine.Op{{asks}}, wire.Oldest, 0, false},
		{"a form that all members read", [][]engine.Op{{asks}}, wire.Version, 0, true},
		{"more than an entry", [][]engine.Op{slices.Repeat([]engine.Op{oneBucket}, queue.MaxEntryOps+1)}, wire.Oldest,
			0, false},
	} {
		var e wire.Encoder
		var body []byte
		var f forwarded
		for i, ops := range test.calls {
			body = e.Call(body, ops, i > 0)
		}
		require.NoError(t, f.read(body))
		p := &Pipeline{evictions: newEvictions(), Config: Config{
			Agreed: new(atomic.Int32), Leadership: &leadership.Leadership{},
		}}
		p.Agreed.Store(int32(test.agreed))
		p.denials.left.Store(test.denied)
		require.Equal(t, test.want, p.mayLog(&f, body, wire.FormsOf(f.ops)), test.name)
	}
}

// TestForwardedMemoryIsUsedAgain checks that a body whose memory held another body before has only its own calls, and
// no answers yet.
func TestForwardedMemoryIsUsedAgain(t *testing.T) {
	var f forwarded
	var e wire.Encoder
	body := e.Call(nil, []engine.Op{oneBucket, oneBucket}, true)
	require.NoError(t, f.read(e.Call(body, []engine.Op{oneBucket}, true)))
	for i := range f.answers() {
		f.out[i].Allowed = 1
	}
	e.Reset()
	other := oneBucket
	other.Key = []byte("other")
	require.NoError(t, f.read(e.Call(nil, []engine.Op{other}, false)))
	require.Equal(t, []forwardedCall{{0, 1, false}}, f.calls)
	require.Equal(t, []engine.Op{other}, f.ops)
	require.Equal(t, []engine.Decision{{}}, f.answers())
}
