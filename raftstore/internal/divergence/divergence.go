package divergence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Judge decides which nodes have the right state when two of them differ. The log is the same on every node. So a
// node with another history has computed other results: its processor, its memory or its build is at fault. An entry
// only shows that follower and leader differ, not which of them is wrong. The node asks every voter for its history
// at one entry:
//
//   - A majority of the voters has this node's history: this node continues.
//   - A majority has one other history: this node is wrong, and stops for good.
//   - Neither within the limit, because voters are down or too many differ: a follower stops without a mark and may
//     start again. A node that led when the dispute began continues; it has lost a follower, and so perhaps its
//     leadership.
//
// The question carries the history of the node that asks. A node with another history begins its own dispute. So a
// leader with a wrong state also stops.
type Judge struct {
	Config

	found    chan fsm.Difference // holds the difference for the next dispute; capacity 1, later ones are dropped
	UnderWay atomic.Bool         // a dispute is under way: this node withholds its answers

	started  atomic.Bool
	checking timers.Single
}

// Config has what a Judge needs.
type Config struct {
	Self      string // the id of this node
	Heartbeat time.Duration
	Raft      Raft
	History   History
	Peers     Peers
	Life      *timers.Lifetime
	Log       *slog.Logger
	Fatal     func(error)               // stops this node
	Forbid    func(reason string) error // marks the data directory, so that the node does not start again
}

// Raft tells a Judge about the group's members.
type Raft interface {
	State() raft.RaftState
	Voters() []string
}

// History is the history of this node's state machine.
type History interface {
	// LastHistory returns the last entry applied, and the history up to it.
	LastHistory() (index, hash uint64)
	// HistoryAt returns the history at an entry, or false if it is not applied yet or no longer remembered.
	HistoryAt(index uint64) (uint64, bool)
}

// Peers connects a Judge to the other nodes.
type Peers interface {
	// Client returns the connection to a member, or nil for this node and unknown nodes.
	Client(id string) *peer.Client
}

// New returns the judge of a group that has not started.
func New(c Config) *Judge { return &Judge{Config: c, found: make(chan fsm.Difference, 1)} }

const (
	// askHistoryAgain is the pause before voters that lack the entry are asked again.
	askHistoryAgain = 20 * time.Millisecond
	// firstPoll is how long a dispute asks about one entry, before it asks about the newest that this node has applied
	// by then. Each next poll takes twice as long. An early end helps if the others have applied so many entries since
	// that they no longer remember the first one, and a late one if they have not applied it yet.
	firstPoll = 5 * askHistoryAgain
	// divergenceTimeouts bounds a dispute in election timeouts, so that a voter that restarts can still answer.
	divergenceTimeouts = 2
	// historyBytes is the length of an entry's index or of a history in a call.
	historyBytes = 8
)

// Differs requests a dispute, unless one is already requested. It never blocks, because the Raft library's goroutine
// and the inter-node port call it.
func (d *Judge) Differs(at fsm.Difference) {
	select {
	case d.found <- at:
	default:
	}
	if d.started.Load() {
		d.checking.Go(d.Life.Go, d.run)
	}
}

// Start begins the dispute that was requested while the node started, and lets Differs begin disputes.
func (d *Judge) Start() {
	d.started.Store(true)
	d.checking.Go(d.Life.Go, d.run)
}

// run carries out the dispute that is requested.
func (d *Judge) run() {
	if d.UnderWay.Load() || d.Life.Closing() {
		return // this node must stop
	}
	select {
	case at := <-d.found:
		d.UnderWay.Store(true)
		if d.judge(at) {
			return // this node's answers are withheld until it is closed
		}
		d.UnderWay.Store(false)
		timers.Pause(d.Life.Ctx, d.Heartbeat) // a node with a wrong state needs a moment to stop
		d.forget()
	default:
	}
}

// forget drops a difference that was found during the last dispute, because that one has decided about it. Nodes that
// still differ find it again at the next entry.
func (d *Judge) forget() {
	select {
	case <-d.found:
	default:
	}
}

// judge polls the voters until a majority of them has the same history, or divergenceTimeouts has passed. It reports
// whether this node must stop.
func (d *Judge) judge(at fsm.Difference) (mustStop bool) {
	led := d.Raft.State() == raft.Leader
	d.Log.Error("this node's state differs from another node's; asking all voters for theirs",
		"entry", at.Index, "here", hash(at.Mine), "there", hash(at.Theirs), "node", at.Node)
	ctx, cancel := context.WithTimeout(d.Life.Ctx, divergenceTimeouts*timers.ElectionTimeout(d.Heartbeat))
	defer cancel()
	poll, ends, lasts := d.newPoll(), time.Now().Add(firstPoll), 2*firstPoll
	for ctx.Err() == nil {
		switch v := d.ask(ctx, poll); v.outcome {
		case inMajority:
			d.Log.Error("a majority of the voters has this node's state; the nodes that differ must stop",
				"entry", v.index,
				"differ", v.others)
			return false
		case inMinority:
			d.diverged(fmt.Errorf("%w: at entry %d the history is %v here and %v on %v", failure.ErrDiverged, v.index,
				hash(v.mine), hash(v.majority), v.others))
			return true
		}
		timers.Pause(ctx, askHistoryAgain)
		if time.Now().After(ends) {
			poll, ends, lasts = d.newPoll(), time.Now().Add(lasts), 2*lasts
		}
	}
	if !led && d.Raft.State() != raft.Leader && !d.Life.Closing() {
		d.Fatal(fmt.Errorf("%w: at entry %d the history is %v here and %v there", failure.ErrDisputed, at.Index,
			hash(at.Mine), hash(at.Theirs)))
		return true
	}
	return false
}

// hash is a history as log lines show it: in hexadecimal.
type hash uint64

func (h hash) String() string { return fmt.Sprintf("%016x", uint64(h)) }

// pollOutcome tells whether a majority of the voters has this node's history.
type pollOutcome int

const (
	undecided pollOutcome = iota
	inMajority
	inMinority
)

// verdict is the result of a poll: the outcome, and the histories at the entry index.
type verdict struct {
	outcome        pollOutcome
	index          uint64
	mine, majority uint64
	others         []string // the voters with another history than this node's
}

// poll collects the histories of all voters at one entry. The entry stays the same for a while, so that a voter that
// applies it a moment later can answer, too. Every entry is folded into a history, so two nodes that differed once
// differ at all later entries.
type poll struct {
	index, mine uint64
	histories   map[string]uint64 // of the voters that have answered
}

// newPoll begins a poll at the newest entry that this node has applied.
func (d *Judge) newPoll() *poll {
	p := &poll{histories: map[string]uint64{}}
	p.index, p.mine = d.History.LastHistory()
	return p
}

// ask asks the voters that have not answered yet.
func (d *Judge) ask(ctx context.Context, p *poll) verdict {
	d.askHistories(ctx, p)
	voters := d.Raft.Voters()
	known := map[string]uint64{}
	for _, id := range voters {
		if id == d.Self {
			known[id] = p.mine
		} else if history, ok := p.histories[id]; ok {
			known[id] = history
		}
	}
	return tally(p.index, p.mine, len(voters), known)
}

// tally returns the verdict on the histories of the voters that have answered, by node id. voters is the number of all
// voters.
func tally(index, mine uint64, voters int, histories map[string]uint64) verdict {
	v := verdict{index: index, mine: mine}
	count := map[uint64]int{}
	for id, history := range histories {
		if count[history]++; count[history] > voters/2 {
			v.majority, v.outcome = history, inMinority
		}
		if history != mine {
			v.others = append(v.others, id)
		}
	}
	if v.outcome == inMinority && v.majority == mine {
		v.outcome = inMajority
	}
	return v
}

// askHistories asks the other voters side by side. Only a voter that has applied the entry, and remembers it, answers.
func (d *Judge) askHistories(ctx context.Context, p *poll) {
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
	)
	voters := slices.DeleteFunc(slices.Clone(d.Raft.Voters()), func(id string) bool {
		_, answered := p.histories[id]
		return answered
	})
	for _, id := range voters {
		client := d.Peers.Client(id)
		if client == nil {
			continue // this node
		}
		asking.Go(func() {
			if history, err := askHistory(ctx, client, p.index, p.mine); err == nil {
				mu.Lock()
				p.histories[id] = history
				mu.Unlock()
			}
		})
	}
	asking.Wait()
}

var errNoHistory = errors.New("the entry is not applied yet, or is no longer remembered")

// askHistory returns a node's history at an entry.
func askHistory(ctx context.Context, client *peer.Client, index, mine uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, timers.StatusTimeout)
	defer cancel()
	question := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, index), mine)
	code, answer, err := client.Call(ctx, calls.History, question)
	switch {
	case err != nil:
		return 0, err
	case code != calls.Answered || len(answer) != historyBytes:
		return 0, errNoHistory
	}
	return binary.LittleEndian.Uint64(answer), nil
}

// AnswerHistory answers another node's question, and begins a dispute of this node if the two histories differ.
func (d *Judge) AnswerHistory(from peer.Identity, question []byte) (byte, []byte) {
	if len(question) != 2*historyBytes {
		return calls.Refused, []byte("a question for a history has 16 bytes")
	}
	index, theirs := binary.LittleEndian.Uint64(question), binary.LittleEndian.Uint64(question[historyBytes:])
	mine, ok := d.History.HistoryAt(index)
	if !ok {
		return calls.TryAgain, nil
	}
	if mine != theirs {
		d.Differs(fsm.Difference{Index: index, Mine: mine, Theirs: theirs, Node: from.NodeID})
	}
	return calls.Answered, binary.LittleEndian.AppendUint64(nil, mine)
}

// diverged stops this node for good, because a majority contradicts its state.
func (d *Judge) diverged(err error) {
	if e := d.Forbid(err.Error()); e != nil {
		err = errors.Join(err, e)
	}
	d.Fatal(err)
}
