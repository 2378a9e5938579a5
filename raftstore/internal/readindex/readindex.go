package readindex

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

const (
	// observeEvery is how often a node asks for the read index when no read does, so that
	// StaleFor has an age: a message or two per node cost little.
	observeEvery = 500 * time.Millisecond
	// MaxTelling bounds the messages about commits that are under way: more than a cluster
	// has followers, so it is reached only when some do not answer.
	MaxTelling = 16
)

// ReadIndex returns nil when this node has applied everything that any node had
// acknowledged before the call: reads of this node that follow are linearizable. It
// works on any node and writes nothing to the log (D. Ongaro, "Consensus: Bridging
// Theory and Practice", section 6.4).
//
// The read index is the last entry that the leader has applied, after it has applied
// what was committed when the question arrived (see awaitCommitted). A leader
// acknowledges a write after it has applied it, and before it serves (becomeLeader) it applies
// everything that earlier leaders committed. So the read index covers every acknowledged
// write, unless a later leader was elected before the call. A majority rules that out:
// each of its nodes, asked after the call, was still in the leader's term, and a node
// enters a later term before it votes in it (see quorum.Check). A follower then waits until
// it has applied the read index. That entry is committed, so it stays valid whichever
// node leads by then.
//
// ErrNoLeader: no leader is known. ErrTryAgain: the leader or its majority did not answer
// in time, this node did not apply the read index in time, or a divergence check of this
// node is under way.
func (rd *Reads) ReadIndex() error {
	if rd.Faults.Has(faults.ReadLocally) {
		return nil
	}
	if rd.Disputed.Load() {
		return failure.ErrTryAgain
	}
	if r := rd.Leadership.Current.Load(); r != nil {
		err := rd.readAsLeader(r, true)
		if err == nil || rd.Leadership.Current.Load() == r {
			return err
		}
	}
	return rd.wait()
}

// readAsLeader is readIndex where this node leads. forRead says that reads follow.
func (rd *Reads) readAsLeader(r *leadership.Term, forRead bool) error {
	asked, at := time.Now(), rd.Leadership.Stamp(r)
	if err := rd.AwaitCommitted(); err != nil {
		return err
	}
	if err := rd.StillLeads(r); err != nil {
		return err
	}
	rd.Freshness.saw(asked, 0, 0)
	if forRead {
		rd.advanceReadTime(readTime{r.Number, at})
	}
	return nil
}

// Reads makes the reads of this node linearizable, with ReadIndex, and knows how old a read is
// that asks nobody.
//
// A follower asks the leader for the read index, for all reads that wait. One question is under
// way at a time. The next question serves all reads that arrived meanwhile, as in etcd's
// linearizableReadLoop.
type Reads struct {
	*host.Host
	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Logs       *raftlog.Log
	Transport  *raft.NetworkTransport
	Leadership *leadership.Leadership
	Confirms   *quorum.Check
	Disputed   *atomic.Bool // a divergence check is under way

	Freshness freshness
	ReadTime  atomic.Pointer[readTime] // nil: no leader has told its time
	Telling   chan struct{}            // holds a token for each message about a commit that is under way
	Wake      chan struct{}            // holds one token: a read waits

	mu   sync.Mutex
	next *readIndexRound // nil: no read waits
}

// readIndexRound is one question and the reads that wait for its answer.
type readIndexRound struct {
	done chan struct{}
	err  error
}

// wait joins the next question and waits for its outcome.
func (rd *Reads) wait() error {
	rd.mu.Lock()
	if rd.next == nil {
		rd.next = &readIndexRound{done: make(chan struct{})}
	}
	mine := rd.next
	rd.mu.Unlock()
	select {
	case rd.Wake <- struct{}{}:
	default:
	}
	select {
	case <-mine.done:
		return mine.err
	case <-rd.Stop:
		return failure.ErrTryAgain
	}
}

func (rd *Reads) take() *readIndexRound {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	r := rd.next
	rd.next = nil
	return r
}

// Run asks whenever reads wait, and every observeEvery so that StaleFor knows how old
// the state is. It ends with the node.
func (rd *Reads) Run() {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for {
		select {
		case <-rd.Wake:
		case <-tick.C:
		case <-rd.Stop:
			return
		}
		r := rd.take()
		err := rd.ask(r != nil)
		if r != nil {
			r.err = err
			close(r.done)
		}
	}
}

// ask repeats the question until it is answered, for at most half a heartbeat: long enough
// for a handover of leadership, and not for an election, which takes longer than clients
// wait for a read.
func (rd *Reads) ask(forRead bool) error {
	began := time.Now()
	for {
		err := rd.AskOnce(forRead)
		if err == nil || errors.Is(err, failure.ErrLagging) || !forRead ||
			time.Since(began) >= rd.Options.Heartbeat/2 || rd.Closing() {
			return err
		}
		timers.Pause(rd.Ctx, timers.LeaderlessPause)
	}
}

func (rd *Reads) AskOnce(forRead bool) error {
	if r := rd.Leadership.Current.Load(); r != nil {
		return rd.readAsLeader(r, forRead)
	}
	asker, client := rd.Peers.Clients(rd.Raft.Leader())
	if asker == nil {
		return failure.ErrNoLeader
	}
	asked := time.Now()
	a, err := rd.askReadIndex(asker, client)
	if err != nil {
		return err
	}
	applied, _ := rd.FSM.Check()
	rd.Freshness.saw(asked, a.index, applied)
	if err := rd.awaitApplied(a.index, asker); err != nil {
		return err
	}
	rd.Freshness.saw(asked, a.index, a.index)
	if forRead && a.term != 0 {
		rd.advanceReadTime(readTime{a.term, a.at})
	}
	return nil
}

// awaitApplied waits until this node has applied an entry, at most as long as a decision
// may take. A follower learns with the next message of the leader that an entry is
// committed, which is up to twice the CommitTimeout away. It asks again while it waits,
// because the question makes the leader send that message at once.
func (rd *Reads) awaitApplied(index uint64, asker *peer.Client) error {
	applied, forget := rd.FSM.WhenApplied(index)
	defer forget()
	began := time.Now()
	for again := timers.AskAllAfter; ; again = min(2*again, timers.AskAgain) {
		select {
		case <-applied:
			return nil
		case <-time.After(again):
		case <-rd.Stop:
			return failure.ErrTryAgain
		}
		if time.Since(began) > rd.MaxAge {
			return failure.ErrLagging
		}
		rd.callReadIndex(asker) // the wait is for the first answer's index
	}
}

// readTime is the time of the leader of a term when it answered a read.
type readTime struct {
	term uint64
	at   engine.Stamp
}

// advanceReadTime sets the time by which reads of this node judge, but never back.
func (rd *Reads) advanceReadTime(t readTime) {
	for {
		known := rd.ReadTime.Load()
		if known != nil && (known.term > t.term || known.term == t.term && known.at.NowNs >= t.at.NowNs) {
			return
		}
		if rd.ReadTime.CompareAndSwap(known, &t) {
			return
		}
	}
}

// callTimeout bounds one question.
func (rd *Reads) callTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(rd.Ctx, min(timers.StatusTimeout, rd.MaxAge))
}

// AwaitCommitted waits until this leader has applied what was committed when it was
// called. A follower applies an entry as soon as it knows that it is committed, which may
// be before the leader has applied it. A read of the follower then shows the entry, and
// what the leader answers afterwards must not be older.
func (rd *Reads) AwaitCommitted() error {
	commit := rd.Raft.CommitIndex()
	if rd.FSM.HasPassed(commit) {
		return nil
	}
	guards.Unapplied.Hit()
	applied, forget := rd.FSM.WhenApplied(commit)
	defer forget()
	timer := time.NewTimer(rd.MaxAge)
	defer timer.Stop()
	select {
	case <-applied:
		return nil
	case <-timer.C:
	case <-rd.Stop:
	}
	return failure.ErrTryAgain
}

// StillLeads returns nil when nobody had been elected after r began, as a majority
// confirmed after the call: else this node's state may lack what another leader
// answered.
func (rd *Reads) StillLeads(r *leadership.Term) error { return rd.Confirms.Confirm(r.Number) }

// LookStamp returns the time by which reads judge: the last entry's, or the later one that
// came with a read index. It ignores a time of an earlier term, because the clock of the
// new leader may be behind it.
func (rd *Reads) LookStamp() engine.Stamp {
	at, told := rd.FSM.LastStamp(), rd.ReadTime.Load()
	if told != nil && told.at.NowNs > at.NowNs && told.term == rd.Raft.CurrentTerm() {
		return told.at
	}
	return at
}
