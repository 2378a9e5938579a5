package limiter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

// TestBaseIsHere checks that a node reads what is common from a group that it has.
func TestBaseIsHere(t *testing.T) {
	top := limiter.Topology{Groups: []limiter.Group{{Ended: "removed"}, {Away: true}, {}, {}}}
	require.Equal(t, 2, top.Base())
	top.Groups[0].Ended = ""
	require.Equal(t, 0, top.Base())
}

// TestAViewEndsWithItsRead checks that nobody reads from a View whose errors nobody would see.
func TestAViewEndsWithItsRead(t *testing.T) {
	node := servertest.NewFakeCluster().Node("a")
	r := limiter.NewReader(node)
	var kept limiter.View
	require.NoError(t, r.Read(nil, func(v limiter.View, _ time.Duration) { kept = v }))
	require.Panics(t, func() { kept.Inspect([]byte("k")) })
}

// TestAReadBeginsBeforeItsReadIndex checks that a group which arrives at a node during a run of reads is read where it
// was: the ReadIndex of a group on other nodes says nothing about the replica that arrives. A failed read ends the run.
func TestAReadBeginsBeforeItsReadIndex(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("a", "b")
	node := f.Node("a")
	node.MoveAway(1)
	order := &arrivals{FakeReplica: node}
	r := limiter.NewReader(order)
	read := func() error {
		return r.Read(func(*limiter.Topology) ([]int, bool) { return []int{1}, false },
			func(v limiter.View, _ time.Duration) { v.Inspect([]byte("foo")) })
	}
	begin := []string{"Reading", "ReadIndexOf"}
	require.NoError(t, read())
	require.NoError(t, read())
	require.Equal(t, begin, order.calls)
	r.End()
	require.NoError(t, read())
	require.Equal(t, append(begin, begin...), order.calls)
	node.FailReads(limiter.ErrTryAgain, 0)
	require.ErrorIs(t, read(), limiter.ErrTryAgain)
	node.FailReads(nil, 0)
	require.NoError(t, read())
	require.Equal(t, append(begin, append(begin, begin...)...), order.calls)
}

// arrivals records the order of calls.
type arrivals struct {
	*servertest.FakeReplica
	calls []string
}

func (a *arrivals) Reading(failed func(error)) limiter.State {
	a.calls = append(a.calls, "Reading")
	return a.FakeReplica.Reading(failed)
}

func (a *arrivals) ReadIndexOf(slot uint16) error {
	a.calls = append(a.calls, "ReadIndexOf")
	return a.FakeReplica.ReadIndexOf(slot)
}
