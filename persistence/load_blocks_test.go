package persistence

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestOlderBlocksAreLoadedFirst checks that a worker gets the first block of format 6 only after all workers have
// loaded the older blocks, and that no older block may follow.
func TestOlderBlocksAreLoadedFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newLoadWorkers(ctx)
	for lane := range byte(laneCount) {
		require.NoError(t, w.hand(shortBlock+lane, make([]byte, parcelBytes)))
		<-w.queues[int(lane)%len(w.queues)]
	}
	require.NoError(t, w.hand(shortBlock, []byte("old")))
	handed := make(chan error, 1)
	go func() { handed <- w.hand(orderedBlock, []byte("new")) }()
	for i, q := range w.queues {
		p := <-q
		require.NotNil(t, p.loaded, "worker %d", i)
		require.Equal(t, i == 0, len(p.blocks) == 1 && string(p.blocks[0]) == "old")
		require.Empty(t, handed)
		if i == len(w.queues)-1 {
			break
		}
		p.loaded <- struct{}{}
	}
	w.loaded <- struct{}{} // the last worker is done
	require.NoError(t, <-handed)
	require.NoError(t, w.hand(orderedBlock+1, nil), "later blocks wait for none")
	require.ErrorIs(t, w.hand(shortBlock, nil), ErrDamaged)
	require.ErrorIs(t, w.hand(0, nil), ErrDamaged)
	go w.end()
	require.Equal(t, "new", string((<-w.queues[0]).blocks[0]))

	w = newLoadWorkers(ctx)
	cancel()
	for err := error(nil); err == nil; { // the queues are not full at first
		if err = w.hand(orderedBlock, make([]byte, parcelBytes)); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
}

// TestALimiterHasOneLane checks that all changes of the limiters of a policy for one key are in one lane.
func TestALimiterHasOneLane(t *testing.T) {
	lanes := map[byte]bool{}
	for _, key := range []string{"a", "b", "key-7", "policy|p"} {
		lane := laneOf(append([]byte("m"), engine.LimiterName("p", 0, []byte(key))...))
		for number := range 8 {
			require.Equal(t, lane, laneOf(append([]byte("l"), engine.LimiterName("p", number, []byte(key))...)))
		}
		lanes[lane] = true
	}
	require.Greater(t, len(lanes), 1)
	require.NotEqual(t, laneOf([]byte("lkey-1")), laneOf([]byte("lkey-2")))
}

// TestMemoryForGatheredChanges checks that it is small at first, and bounded after a large change.
func TestMemoryForGatheredChanges(t *testing.T) {
	g := gathered{to: newFakeTable()}
	require.NoError(t, g.add(engine.Change{Key: []byte("k"), Value: []byte{1}}))
	require.LessOrEqual(t, cap(g.bytes), firstBytes, "a small group takes little memory")
	for _, n := range []int{4 * gatherBytes, 1, gatherBytes / 2, gatherBytes, 1} {
		require.NoError(t, g.add(engine.Change{Key: []byte("k"), Value: make([]byte, n)}))
	}
	require.LessOrEqual(t, cap(g.bytes), gatherBytes+1)
	require.NoError(t, g.load())
}
