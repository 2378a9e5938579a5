package raftstore_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore"
)

// stops is a failpoint of all nodes of a cluster, at which a test can block them.
type stops struct{ now atomic.Pointer[stop] }

type stop struct {
	at      faults.Point
	reached chan struct{} // receives a token at each arrival
	pass    chan struct{} // each token lets one caller pass; closed lets all pass
}

func (s *stops) failpoint(at faults.Point) {
	if one := s.now.Load(); one != nil && one.at == at {
		one.reached <- struct{}{}
		<-one.pass
	}
}

// set blocks the nodes at a failpoint until the test ends or release is called.
func (s *stops) set(t *testing.T, at faults.Point) (one *stop, release func()) {
	one = &stop{at, make(chan struct{}, 100), make(chan struct{})}
	release = sync.OnceFunc(func() {
		s.now.Store(nil)
		close(one.pass)
	})
	t.Cleanup(release)
	s.now.Store(one)
	return one, release
}

// TestAnEarlyQuestionIsOutlived checks a leader that asks its majority early and loses its leadership before it
// previews its state. It must not deny from that state, because the majority confirmed a term that has ended.
func TestAnEarlyQuestionIsOutlived(t *testing.T) {
	for name, ops := range map[string][]engine.Op{
		"all is denied":  threeQuotas("key"),
		"some is denied": append(threeQuotas("key"), quota("fresh", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			var s stops
			c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
				o.Failpoint = s.failpoint
			})
			leader, at := c.leader()
			for range 20 {
				c.decideOn(leader, threeQuotas("key")...) // after these denials the leader asks its majority early
			}
			held, release := s.set(t, faults.DuringDenial)
			answer := make(chan error, 1)
			go func() { answer <- leader.Decide(ops, make([]engine.Decision, len(ops))) }()
			<-held.reached
			require.Eventually(t, func() bool { return leader.ReadIndex() == nil }, patience, time.Millisecond,
				"a later round must confirm the leader, so the early question has its answer")
			term := leader.Topology().Term
			require.Eventually(t, func() bool {
				return leader.TransferLeadership(c.opts[(at+1)%3].NodeID) == nil || leader.Topology().Term > term
			}, patience, time.Millisecond)
			require.Eventually(t, func() bool { return leader.Topology().Term > term }, patience, time.Millisecond)
			release()
			require.Error(t, <-answer)
		})
	}
}

// TestALateAnswerIsUnknown checks that a call fails if it takes too long as a whole, although each part is answered
// in time. Late admissions must not be returned.
func TestALateAnswerIsUnknown(t *testing.T) {
	var s stops
	const age = time.Second
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) { o.MaxDecisionAge, o.Failpoint = age, s.failpoint })
	_, at := c.leader()
	follower := c.nodes[(at+1)%3]
	ops := make([]engine.Op, 1500) // too many for one entry
	for i := range ops {
		ops[i] = quota("key", 10_000)
	}
	held, release := s.set(t, faults.BeforeForward)
	defer release()
	answer := make(chan error, 1)
	go func() { answer <- follower.Decide(ops, make([]engine.Decision, len(ops))) }()
	for range 2 {
		select {
		case <-held.reached:
			time.Sleep(age * 6 / 10)
			held.pass <- struct{}{}
		case err := <-answer: // on a busy machine the first part alone may take too long
			require.Error(t, err)
			return
		}
	}
	require.Error(t, <-answer)
}

// TestANodeJoinsForItselfOnly checks that the leader adds or moves a member only at that member's own request.
func TestANodeJoinsForItselfOnly(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	follower, third := c.nodes[(at+1)%3], c.opts[(at+2)%3]
	before := leader.Topology().Nodes
	for name, id := range map[string]string{"a member": third.NodeID, "nobody": "n9"} {
		err := follower.AskInAs(c.opts[at].RaftAddr, id, "127.0.0.1:1")
		require.ErrorContains(t, err, "may ask for itself only", name)
	}
	require.Len(t, leader.Topology().Nodes, len(before))
	for _, m := range leader.Topology().Nodes {
		require.NotEqual(t, "127.0.0.1:1", m.RaftAddr)
	}
	c.take(c.nodes[(at+2)%3], "key", 10)
}
