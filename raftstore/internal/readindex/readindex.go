package readindex

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

const (
	// observeEvery is how often a node asks for the read index without a waiting read, so that StaleFor has an age. It
	// costs a message or two per node.
	observeEvery = 500 * time.Millisecond
	// maxCommitMessages bounds the commit messages that are under way. It exceeds the number of followers, so it is
	// reached only when some do not answer.
	maxCommitMessages = 16
)

// ReadIndex returns nil when this node has applied everything that any node had acknowledged before the call. Later
// reads of this node are then linearizable. It works on any node and writes nothing to the log (D. Ongaro,
// "Consensus: Bridging Theory and Practice", section 6.4).
//
// When the question arrives, the leader first applies the entries that are committed (see AwaitCommitted). The read
// index is the last entry that the leader has applied then. A leader acknowledges a write after it has applied it.
// Before it serves (BecomeLeader), it applies everything that earlier leaders committed. So the read index covers
// every acknowledged write, unless a later leader was elected before the call.
//
// The answers of a majority exclude such an election. Each node of the majority, asked after the call, was still in
// the leader's term, and a node enters a term before it votes in that term (see quorum.Rounds). A follower then waits
// until it has applied the read index. That entry is committed, so it stays valid under any later leader.
//
// limiter.ErrClusterDown: no leader is known. limiter.ErrTryAgain: the leader or its majority did not answer in time,
// or this node did not apply the read index in time. ErrTryAgain is also the result while a divergence check of this
// node is under way.
func (rd *Reads) ReadIndex() error {
	if rd.Faults.Has(faults.ReadLocally) {
		return nil
	}
	if rd.Disputed.Load() {
		return limiter.ErrTryAgain
	}
	if r := rd.Leadership.Current.Load(); r != nil {
		err := rd.readAsLeader(r, true)
		if err == nil || rd.Leadership.Current.Load() == r {
			return err
		}
	}
	return rd.wait()
}

// readAsLeader implements ReadIndex on the leader. forRead tells that reads follow.
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

// Reads makes the reads of this node linearizable with ReadIndex, and bounds the age of stale reads.
//
// A follower asks the leader for the read index on behalf of all waiting reads. One question is under way at a time.
// The next question serves all reads that arrived meanwhile, as in etcd's linearizableReadLoop.
type Reads struct {
	Config

	Freshness      freshness
	ReadTime       atomic.Pointer[readTime] // nil: no leader has sent its time
	commitMessages chan struct{}            // holds a token for each commit message that is under way
	asker          *timers.Worker           // calls askAll

	mu      sync.Mutex
	next    *readIndexRound // nil: no read waits
	observe bool            // a question is due although no read waits
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
	rd.asker.Wake()
	select {
	case <-mine.done:
		return mine.err
	case <-rd.Life.Stop:
		return limiter.ErrTryAgain
	}
}

// Start begins the observations.
func (rd *Reads) Start() {
	rd.Life.Every(timers.HousekeepEvery, rd.asker.Rest)
	rd.Life.Every(observeEvery, rd.startObservation)
}

// waiting removes and returns the reads that wait, nil for none. due is false if there is no reason to ask.
func (rd *Reads) waiting() (r *readIndexRound, due bool) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	r, due = rd.next, rd.next != nil || rd.observe
	rd.next, rd.observe = nil, false
	return r, due && !rd.Life.Closing()
}

// askAll asks for the read index until no read waits.
func (rd *Reads) askAll() {
	for r, due := rd.waiting(); due; r, due = rd.waiting() {
		err := rd.ask(r != nil)
		if r != nil {
			r.err = err
			close(r.done)
		}
	}
}

// startObservation begins a question without a waiting read, so that StaleFor knows the age of the state.
func (rd *Reads) startObservation() {
	rd.mu.Lock()
	rd.observe = true
	rd.mu.Unlock()
	rd.asker.Once()
}

// ask repeats the question until it is answered, for at most half a heartbeat timeout. That is long enough for a
// transfer of leadership. An election takes longer than clients wait for a read.
func (rd *Reads) ask(forRead bool) error {
	began := time.Now()
	for {
		err := rd.AskOnce(forRead)
		if err == nil || errors.Is(err, failure.ErrLagging) || !forRead ||
			time.Since(began) >= rd.Heartbeat/2 || rd.Life.Closing() {
			return err
		}
		timers.Pause(rd.Life.Ctx, timers.LeaderlessPause)
	}
}

// AskOnce asks once for the read index and waits until this node has applied it. forRead tells that reads wait.
func (rd *Reads) AskOnce(forRead bool) error {
	if r := rd.Leadership.Current.Load(); r != nil {
		return rd.readAsLeader(r, forRead)
	}
	asker, _ := rd.Peers.Clients(rd.Raft.Leader())
	if asker == nil {
		return limiter.ErrClusterDown
	}
	asked := time.Now()
	a, err := rd.askReadIndex(asker)
	if err != nil {
		return err
	}
	applied, _ := rd.FSM.LastHistory()
	rd.Freshness.saw(asked, a.index, applied)
	if err := rd.awaitApplied(a.index, asker); err != nil {
		return err
	}
	rd.Freshness.saw(asked, a.index, a.index)
	if forRead {
		rd.advanceReadTime(readTime{a.term, a.at})
	}
	return nil
}

// awaitApplied waits until this node has applied an entry, for at most the maximum age of a decision. A follower
// learns with the leader's next message that an entry is committed, which may take twice the CommitTimeout.
// awaitApplied repeats the question while it waits, because the question makes the leader send that message at once.
func (rd *Reads) awaitApplied(index uint64, asker *peer.Client) error {
	applied, forget := rd.FSM.WhenApplied(index)
	defer forget()
	began := time.Now()
	for again := timers.AskAllAfter; ; again = min(2*again, timers.AskAgain) {
		select {
		case <-applied:
			return nil
		case <-time.After(again):
		case <-rd.Life.Stop:
			return limiter.ErrTryAgain
		}
		if time.Since(began) > rd.MaxAge {
			return failure.ErrLagging
		}
		rd.callReadIndex(asker) // the wait is for the first answer's index
	}
}

// readTime is the time of a leader's clock in its term, when the leader answered a read.
type readTime struct {
	term uint64
	at   engine.Stamp
}

// advanceReadTime sets the time that reads of this node use, but never back.
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
	return context.WithTimeout(rd.Life.Ctx, min(timers.StatusTimeout, rd.MaxAge))
}

// AwaitCommitted waits until this leader has applied the entries that were committed at the call. A follower applies
// an entry when it knows that the entry is committed, perhaps before the leader applies it. A read of the follower
// then shows the entry, and later answers of the leader must not be older.
func (rd *Reads) AwaitCommitted() error {
	commit := rd.Raft.CommitIndex()
	if rd.FSM.HasApplied(commit) {
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
	case <-rd.Life.Stop:
	}
	return limiter.ErrTryAgain
}

// StillLeads returns nil if a majority, asked after the call, confirms that no leader of a later term than r was
// elected. Otherwise this node's state may lack decisions of another leader.
func (rd *Reads) StillLeads(r *leadership.Term) error { return rd.Confirms.Confirm(r.Number) }

// LookStamp returns the time that reads use: the stamp of the last entry, or a later time that came with a read
// index. It ignores a time of an earlier term, because the clock of the new leader may be behind it.
func (rd *Reads) LookStamp() engine.Stamp {
	at, told := rd.FSM.LastStamp(), rd.ReadTime.Load()
	if told != nil && told.at.NowNs > at.NowNs && told.term == rd.Raft.CurrentTerm() {
		return told.at
	}
	return at
}
