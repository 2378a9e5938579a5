package raftstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/peer"
)

// ReadIndex returns nil when this node has applied everything that any node had
// acknowledged before the call: reads of this node that follow are linearizable. It
// works on any node and writes nothing to the log (D. Ongaro, "Consensus: Bridging
// Theory and Practice", section 6.4).
//
// The read index is the last entry that the leader has applied, after it has applied
// what was committed when the question arrived (see awaitCommitted). A leader
// acknowledges a write after it has applied it, and before it serves (ascend) it applies
// everything that earlier leaders committed. So the read index covers every acknowledged
// write, unless a later leader was elected before the call. A majority rules that out:
// each of its nodes, asked after the call, was still in the leader's term, and a node
// enters a later term before it votes in it (see confirmer). A follower then waits until
// it has applied the read index. That entry is committed, so it stays valid whichever
// node leads by then.
//
// ErrNoLeader: no leader is known. ErrTryAgain: the leader or its majority did not answer
// in time, this node did not apply the read index in time, or a divergence check of this
// node is under way.
func (n *Node) ReadIndex() error {
	if n.faults.ReadLocally {
		return nil
	}
	if n.divergence.underWay.Load() {
		return ErrTryAgain
	}
	if r := n.reign.Load(); r != nil {
		err := n.readAsLeader(r, true)
		if err == nil || n.reign.Load() == r {
			return err
		}
	}
	return n.reads.wait()
}

// readAsLeader is ReadIndex where this node leads. forRead says that reads follow.
func (n *Node) readAsLeader(r *reign, forRead bool) error {
	asked, at := time.Now(), n.stamp(r)
	if err := n.awaitCommitted(); err != nil {
		return err
	}
	if err := n.stillLeads(r); err != nil {
		return err
	}
	n.freshness.saw(asked, 0, 0)
	if forRead {
		n.advanceReadTime(readTime{r.term, at})
	}
	return nil
}

// readIndexer asks the leader for the read index, for all reads of a follower. One
// question is under way at a time. The next question serves all reads that arrived
// meanwhile, as in etcd's linearizableReadLoop.
type readIndexer struct {
	node *Node
	wake chan struct{} // holds one token: a read waits

	mu   sync.Mutex
	next *readIndexRound // nil: no read waits
}

// readIndexRound is one question and the reads that wait for its answer.
type readIndexRound struct {
	done chan struct{}
	err  error
}

func newReadIndexer(n *Node) *readIndexer {
	return &readIndexer{node: n, wake: make(chan struct{}, 1)}
}

// wait joins the next question and waits for its outcome.
func (q *readIndexer) wait() error {
	q.mu.Lock()
	if q.next == nil {
		q.next = &readIndexRound{done: make(chan struct{})}
	}
	mine := q.next
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	select {
	case <-mine.done:
		return mine.err
	case <-q.node.stop:
		return ErrTryAgain
	}
}

func (q *readIndexer) take() *readIndexRound {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.next
	q.next = nil
	return r
}

// run asks whenever reads wait, and every observeEvery so that StaleFor knows how old
// the state is. It ends with the node.
func (q *readIndexer) run() {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for {
		select {
		case <-q.wake:
		case <-tick.C:
		case <-q.node.stop:
			return
		}
		r := q.take()
		err := q.ask(r != nil)
		if r != nil {
			r.err = err
			close(r.done)
		}
	}
}

// ask repeats the question until it is answered, for at most half a heartbeat: long enough
// for a handover of leadership, and not for an election, which takes longer than clients
// wait for a read.
func (q *readIndexer) ask(forRead bool) error {
	began := time.Now()
	for {
		err := q.askOnce(forRead)
		if err == nil || errors.Is(err, errLagging) || !forRead || time.Since(began) >= q.node.options.Heartbeat/2 || q.node.closing() {
			return err
		}
		pause(q.node.ctx, leaderlessPause)
	}
}

func (q *readIndexer) askOnce(forRead bool) error {
	n := q.node
	if r := n.reign.Load(); r != nil {
		return n.readAsLeader(r, forRead)
	}
	asker, client := n.leaderClients()
	if asker == nil {
		return ErrNoLeader
	}
	asked := time.Now()
	a, err := n.askReadIndex(asker, client)
	if err != nil {
		return err
	}
	applied, _ := n.machine.check()
	n.freshness.saw(asked, a.index, applied)
	if err := n.awaitApplied(a.index, asker); err != nil {
		return err
	}
	n.freshness.saw(asked, a.index, a.index)
	if forRead && a.term != 0 {
		n.advanceReadTime(readTime{a.term, a.at})
	}
	return nil
}

// awaitApplied waits until this node has applied an entry, at most as long as a decision
// may take. A follower learns with the next message of the leader that an entry is
// committed, which is up to twice the CommitTimeout away. It asks again while it waits,
// because the question makes the leader send that message at once.
func (n *Node) awaitApplied(index uint64, asker *peer.Client) error {
	applied, forget := n.machine.whenApplied(index)
	defer forget()
	began := time.Now()
	for again := askAllAfter; ; again = min(2*again, askAgain) {
		select {
		case <-applied:
			return nil
		case <-time.After(again):
		case <-n.stop:
			return ErrTryAgain
		}
		if time.Since(began) > n.maxAge {
			return errLagging
		}
		n.callReadIndex(asker) // the wait is for the first answer's index
	}
}

// readTime is the time of the leader of a term when it answered a read.
type readTime struct {
	term uint64
	at   engine.Stamp
}

// advanceReadTime sets the time by which reads of this node judge, but never back.
func (n *Node) advanceReadTime(t readTime) {
	for {
		known := n.readTime.Load()
		if known != nil && (known.term > t.term || known.term == t.term && known.at.NowNs >= t.at.NowNs) {
			return
		}
		if n.readTime.CompareAndSwap(known, &t) {
			return
		}
	}
}

// leaderClients returns the connections to the leader for questions and for operations,
// or nil when none is known.
func (n *Node) leaderClients() (asker, client *peer.Client) {
	_, id := n.raft.LeaderWithID()
	return n.peers.clients(string(id))
}

// callTimeout bounds one question.
func (n *Node) callTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.ctx, min(statusTimeout, n.maxAge))
}
