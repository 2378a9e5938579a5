package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/wire"
)

// someOps returns n operations with separate keys and one shared limit, which depends on the length of the name.
func someOps(name string, n int) []engine.Op {
	ops := make([]engine.Op, n)
	for i := range ops {
		ops[i] = engine.Op{Key: fmt.Appendf(nil, "%s%d", name, i), Cost: 1, Limit: engine.Limit{
			Algorithm: engine.TokenBucket, Max: int64(len(name)), Rate: engine.Rate{Units: 1, PerNs: 1e9},
		}}
	}
	return ops
}

func queued(t *testing.T, q *Queue, name string, n int, foreign bool) (*Batch, int) {
	t.Helper()
	b, from, err := q.Add(someOps(name, n), false, foreign)
	require.NoError(t, err)
	return b, from
}

// mayGo reports whether Next would return a batch at once.
func mayGo(q *Queue) bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	return q.ready()
}

// TestSlotsBoundWhatIsUnderWay checks that the number of slots bounds the batches in flight, however many wait.
func TestSlotsBoundWhatIsUnderWay(t *testing.T) {
	q := New(0, NewHostWindow())
	for range MaxInFlight + 1 {
		queued(t, q, "a", MaxEntryOps, false)
	}
	for range MaxInFlight {
		require.True(t, mayGo(q))
		q.Next()
	}
	require.False(t, mayGo(q))
}

// TestCallsGatherByOrigin checks that alternating calls of this node's clients and of other nodes form one batch
// each. They never overtake an entry of another kind.
func TestCallsGatherByOrigin(t *testing.T) {
	q := New(0, NewHostWindow())
	local, _ := queued(t, q, "a", 1, false)
	foreign, _ := queued(t, q, "b", 1, true)
	require.NotSame(t, local, foreign)
	again, from := queued(t, q, "c", 1, false)
	require.Same(t, local, again)
	require.Equal(t, 1, from)
	again, _ = queued(t, q, "d", 1, true)
	require.Same(t, foreign, again)

	clearing, err := q.Special(wire.Clear)
	require.NoError(t, err)
	after, _ := queued(t, q, "e", 1, false)
	require.NotSame(t, local, after)
	require.NotSame(t, clearing, after)
	full, _ := queued(t, q, "f", MaxEntryOps, true)
	again, _ = queued(t, q, "g", 1, true)
	require.NotSame(t, full, again, "a full batch must not take more calls")
}

// TestACoalescedBatchSharesTheEntry checks that a waiting batch coalesces with the batch before it, and gets its own
// answers.
func TestACoalescedBatchSharesTheEntry(t *testing.T) {
	q := New(0, NewHostWindow())
	local, _ := queued(t, q, "local", 2, false)
	foreign, _ := queued(t, q, "foreign", 3, true)
	b := q.Next()
	require.Same(t, local, b)
	q.Coalesce(b)
	require.Zero(t, q.ops)
	b.Append(someOps("later", 1), false) // with the limit of the last operation in the batch
	require.Equal(t, []string{"local0", "local1", "foreign0", "foreign1", "foreign2", "later0"}, keysOf(t, b))

	for i := range b.Answers() {
		b.Out[i].Remaining = int64(i)
	}
	q.Complete(b, nil)
	<-foreign.Done
	require.NoError(t, foreign.Err)
	for i := range 3 {
		require.EqualValues(t, 2+i, foreign.Out[i].Remaining)
	}
}

// keysOf returns the keys of the operations in the body of a batch, and checks their limits.
func keysOf(t *testing.T, b *Batch) (keys []string) {
	t.Helper()
	var d wire.Decoder
	d.Reset(b.Body())
	for call, more, err := d.Next(); more; call, more, err = d.Next() {
		require.NoError(t, err)
		for _, op := range call.Ops {
			require.EqualValues(t, len(op.Key)-1, op.Limit.Max, "%s", op.Key)
			keys = append(keys, string(op.Key))
		}
	}
	return keys
}

// TestSplicedCallsAreAsEncoded checks that the calls of other nodes go into the log as they arrived, beside calls that
// this node encodes.
func TestSplicedCallsAreAsEncoded(t *testing.T) {
	q := New(0, NewHostWindow())
	queued(t, q, "before", 1, true)
	body := NewBatch(wire.Decide, 0)
	ops := someOps("their", 2)
	ops[1].Asks, ops[1].ID = engine.Fingerprint{1}, []byte("id")
	body.Append(ops, true)
	b, from, err := q.Splice(body.Body(), ops, body.Forms)
	require.NoError(t, err)
	require.Equal(t, 1, from)
	again, from := queued(t, q, "behind", 1, true) // with the limit that this node encoded last
	require.Same(t, b, again)
	require.Equal(t, 3, from)
	require.Equal(t, []string{"before0", "their0", "their1", "behind0"}, keysOf(t, b))
	require.Equal(t, body.Forms, b.Forms, "the entry has the form of its newest operation")
	require.Contains(t, string(b.Body()), string(body.Body()))
}

// TestACoalescedBatchFailsWithItsEntry checks that a coalesced batch has the outcome of its entry, also after its wait
// expired.
func TestACoalescedBatchFailsWithItsEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(0, NewHostWindow())
		queued(t, q, "a", 1, false)
		coalesced, _ := queued(t, q, "b", 1, true)
		q.Coalesce(q.Next())
		time.Sleep(time.Second)
		q.Expire(time.Second / 2)
		<-coalesced.Done
		require.ErrorIs(t, coalesced.Err, limiter.ErrUnknownOutcome)
	})
}

// TestACoalescedBatchOutlivesAnExpiredOne checks that a batch can coalesce with an expired batch and still gets its
// answers.
func TestACoalescedBatchOutlivesAnExpiredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(0, NewHostWindow())
		queued(t, q, "a", 2, false)
		b := q.Next()
		time.Sleep(time.Second)
		q.Expire(time.Second / 2)
		<-b.Done
		coalesced, _ := queued(t, q, "b", 1, true)
		q.Coalesce(b)
		b.Answers()[2].Remaining = 7
		q.Complete(b, nil)
		<-coalesced.Done
		require.NoError(t, coalesced.Err)
		require.EqualValues(t, 7, coalesced.Out[0].Remaining)
		require.Empty(t, q.inFlight)
	})
}

// TestAnswersAreGivenOnce checks a batch that the fault EarlyReply has answered too early. Its completion must not
// write the answers of a coalesced batch again, which the race detector would report.
func TestAnswersAreGivenOnce(t *testing.T) {
	q := New(0, NewHostWindow())
	queued(t, q, "a", 1, false)
	coalesced, _ := queued(t, q, "b", 1, true)
	b := q.Next()
	q.Coalesce(b)
	read := make(chan int)
	go func() { <-coalesced.Done; read <- len(coalesced.Out) }()
	b.Answers()
	b.Complete(nil)
	q.Complete(b, nil)
	require.Equal(t, 1, <-read)
}

// TestBatchesThatDoNotCoalesce checks that a batch without decisions, or one that does not fit the entry, does not coalesce.
func TestBatchesThatDoNotCoalesce(t *testing.T) {
	q := New(0, NewHostWindow())
	b, _ := queued(t, q, "a", MaxEntryOps, false)
	behind, _ := queued(t, q, "b", 1, true)
	require.Same(t, b, q.Next())
	q.Coalesce(b)
	require.Nil(t, b.coalesced, "the batch is full")
	q.Complete(b, nil)
	require.Same(t, behind, q.Next())

	_, err := q.Special(wire.Tick)
	require.NoError(t, err)
	q.Coalesce(behind)
	require.Nil(t, behind.coalesced, "a tick must not coalesce")
}
