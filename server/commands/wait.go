package commands

import (
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
)

const (
	// maxWait bounds WAIT, also with the timeout 0, which in Redis has no end: a
	// replica that is away for a minute will not come back while somebody waits.
	maxWait = time.Minute
	// WAIT looks again after waitPollMin, then at doubling intervals up to
	// waitPollMax: a replica is mostly a millisecond behind, and thousands who wait
	// for one that is gone must not keep a processor busy.
	waitPollMin = time.Millisecond
	waitPollMax = 64 * time.Millisecond
)

func waitCommand() *command {
	return &command{
		name: "WAIT", arity: 3, syntax: "replicas timeout", summary: "Wait until so many replicas have what this node has decided", flags: "", run: runWait,
		details: "The leader of a cluster answers a decision when a majority has it on disk, so `WAIT` counts these replicas at once. For more it waits " +
			"`timeout` milliseconds, at most a minute (also with 0), but not in a transaction. A follower knows only about the majority and does not wait.",
		reply: "How many replicas have it; 0 where there are none.",
	}
}

func runWait(s *Session, args [][]byte) {
	want, okWant := arg.Int(args[1])
	timeoutMs, okTimeout := arg.Int(args[2])
	switch {
	case !okWant || want < 0:
		s.fail(arg.NotInteger("replicas", "must be a whole number from 0", args[1]))
		return
	case !okTimeout || timeoutMs < 0:
		s.fail(arg.NotInteger("timeout", "must be milliseconds from 0", args[2]))
		return
	}
	timeout := maxWait
	if timeoutMs > 0 && timeoutMs < maxWait.Milliseconds() {
		timeout = time.Duration(timeoutMs) * time.Millisecond
	}
	if s.executing {
		timeout = 0
	}
	s.Int(s.srv.awaitReplicas(want, timeout))
}

// awaitReplicas returns how many nodes besides the leader have everything that
// was committed when it was called. It returns when they are as many as wanted,
// and at the latest after timeout, when this node does not lead or the server stops.
func (s *Shared) awaitReplicas(want int64, timeout time.Duration) (have int64) {
	if s.Replica == nil {
		return 0
	}
	end := time.Now().Add(timeout)
	t := s.Replica.Topology()
	index := t.CommitIndex
	for pause := waitPollMin; ; pause = min(2*pause, waitPollMax) {
		have = max(have, replicasAt(t, index))
		left := time.Until(end)
		if have >= want || left <= 0 || !t.Leads() || s.Draining.Load() {
			return have
		}
		s.Sleep(min(pause, left))
		t = s.Replica.Topology()
	}
}

// replicasAt is how many nodes besides the leader have the log up to a committed
// index: a majority of the voters in any case, and on the leader those seen to.
func replicasAt(t *limiter.Topology, index uint64) int64 {
	majority := t.Count(limiter.IsVoter) / 2
	if !t.Leads() {
		return int64(majority)
	}
	seen := t.Count(func(m *limiter.Member) bool { return m.ID != t.Self && m.AppliedIndex >= index })
	return int64(max(majority, seen))
}
