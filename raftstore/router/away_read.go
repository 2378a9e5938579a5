package router

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// A read of a group that is away is a question to a node that has a replica. That node makes it linearizable, so the
// answer is never stale.

// The names of questions.
const (
	askInspect      = "inspect"
	askLen          = "len"
	askScan         = "scan"
	askRandom       = "random"
	askHolds        = "holds"
	askTop          = "top"
	askEvents       = "events"
	askEventsBefore = "events before"
	askExplain      = "explain"
	askLeader       = "leader"
	askBackup       = "backup"
	askBackupPart   = "backup part"
)

// question is a read of a group. A field that a question does not need is zero.
type question struct {
	What                   string
	Key, Policy            []byte
	Cursor                 uint64
	Count, Database, Group int
	Verdict                engine.Verdict
	AtMs                   int64
	Ops                    []byte // encoded as in a log entry
}

// answer is the answer to a question.
type answer struct {
	Info     engine.Info
	Found    bool
	Number   int64
	Next     uint64
	Key      []byte
	Keys     []scanned
	Holds    []engine.OpenHold
	Top      []engine.Heavy
	Events   []engine.Event
	Position engine.EventsPosition
	Out      []byte // decisions, encoded as in an answer to calls.Decide
	Led      host.Led
}

// scanned is a key that a scan has visited.
type scanned struct {
	Key       []byte
	Algorithm engine.Algorithm
}

// answerRead answers a question about a group of this node.
func (n *Node) answerRead(g *raftstore.Node, body []byte) (byte, []byte) {
	var q question
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&q); err != nil {
		return calls.Refused, []byte(err.Error())
	}
	var b bytes.Buffer
	a, err := n.readHere(g, &q)
	if err == nil {
		err = gob.NewEncoder(&b).Encode(a)
	}
	if err == nil && b.Len() > peer.MaxPayload {
		err = fmt.Errorf("the answer has %d bytes, and a message between nodes at most %d: ask for less", b.Len(),
			peer.MaxPayload)
	}
	return calls.Reply(b.Bytes(), err)
}

// readHere reads a group of this node.
func (n *Node) readHere(g *raftstore.Node, q *question) (a *answer, err error) {
	a = &answer{}
	if err := g.ReadIndex(); err != nil {
		return nil, err
	}
	switch q.What {
	case askLeader:
		g.LookAtMembers()
		if a.Led, a.Found = g.Led(); !a.Found {
			return nil, limiter.ErrNotLeader
		}
	case askInspect:
		a.Info, a.Found = g.Inspect(q.Key)
	case askLen:
		a.Number = g.Len(q.Database)
	case askScan:
		a.Next = g.Scan(q.Cursor, q.Count, func(key []byte, of engine.Algorithm) {
			a.Keys = append(a.Keys, scanned{bytes.Clone(key), of})
		})
	case askRandom:
		a.Key = g.RandomKey(q.Database)
	case askHolds:
		a.Holds, a.Next = g.Holds(q.Policy, q.Key, q.Cursor, q.Count)
	case askTop:
		if _, leads := g.Led(); q.Verdict == engine.Denied && !leads {
			return nil, limiter.ErrNotLeader // only the leader knows the denials
		}
		a.Top = g.Top(q.Verdict, q.Count)
	case askEvents:
		a.Events, a.Position, _ = g.Events(q.Group, q.Cursor, q.Count)
	case askEventsBefore:
		a.Next = g.EventsBefore(q.Group, q.AtMs)
	case askExplain:
		a.Out, err = explainHere(g, q.Ops)
	case askBackup:
		a.Next, a.Number, err = n.lent.begin(g)
	case askBackupPart:
		a.Out, err = n.lent.part(q.Cursor)
	default:
		return nil, fmt.Errorf("this version of weir does not know the question %q", q.What)
	}
	return a, err
}

// explainHere answers encoded operations that are all Dry.
func explainHere(g *raftstore.Node, body []byte) ([]byte, error) {
	var d wire.Decoder
	d.Reset(body)
	ops, _, _, err := d.Append(nil)
	if err != nil || !allDry(ops) {
		return nil, errors.Join(err, errors.New("a question that decides"))
	}
	out := make([]engine.Decision, len(ops))
	if err := g.Decide(ops, out); err != nil {
		return nil, err
	}
	return wire.AppendDecisions(nil, out, wire.Version), nil
}

// read asks a node that has the group.
func (a *away) read(q *question) (*answer, error) { return a.askWith(q, a.maxAge, a.callAny) }

// askWith asks a question by a call.
func (a *away) askWith(q *question, within time.Duration, call func(context.Context, []byte) (byte, []byte, error)) (
	*answer, error,
) {
	var b bytes.Buffer
	b.Write(a.head(calls.Read))
	if err := gob.NewEncoder(&b).Encode(q); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(a.life, within)
	defer cancel()
	status, said, err := call(ctx, b.Bytes())
	switch {
	case err == nil && status == calls.NotLeader, errors.Is(err, peer.ErrNotSent):
		return nil, limiter.ErrClusterDown
	case err != nil:
		return nil, limiter.ErrTryAgain // a read changes nothing
	}
	if err := calls.OutcomeOf(status, said); err != nil {
		return nil, err
	}
	got := &answer{}
	return got, gob.NewDecoder(bytes.NewReader(said)).Decode(got)
}

// look asks the leader for the members of the group.
func (a *away) look() (led host.Led, from string, err error) {
	got, err := a.read(&question{What: askLeader})
	if err != nil {
		return led, "", err
	}
	for _, m := range got.Led.Members {
		if m.ID == got.Led.Leader {
			from = m.Addr
		}
	}
	return got.Led, from, nil
}

// explain answers operations that are all Dry.
func (a *away) explain(ops []engine.Op, out []engine.Decision) error {
	for i := range ops {
		if !wire.Valid(&ops[i]) {
			return errors.New("an operation that no client sends")
		}
	}
	var e wire.Encoder
	got, err := a.read(&question{What: askExplain, Ops: e.Call(nil, ops, false)})
	if err != nil {
		return err
	}
	return wire.ReadDecisions(got.Out, out)
}

// awayReads are the reads of a group that is away, for one caller.
type awayReads struct {
	*away
	failed func(error)
}

var _ readable = awayReads{}

// ask returns the answer to a question, or an empty one after it has told the caller that the read failed.
func (r awayReads) ask(q *question) *answer {
	a, err := r.read(q)
	if err != nil {
		r.failed(err)
		return &answer{}
	}
	return a
}

func (r awayReads) Inspect(key []byte) (engine.Info, bool) {
	a := r.ask(&question{What: askInspect, Key: key})
	return a.Info, a.Found
}

func (r awayReads) Len(database int) int64 {
	return r.ask(&question{What: askLen, Database: database}).Number
}

func (r awayReads) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	a := r.ask(&question{What: askScan, Cursor: cursor, Count: count})
	for _, k := range a.Keys {
		visit(k.Key, k.Algorithm)
	}
	return a.Next
}

func (r awayReads) RandomKey(database int) []byte {
	return r.ask(&question{What: askRandom, Database: database}).Key
}

func (r awayReads) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	a := r.ask(&question{What: askHolds, Policy: policy, Key: key, Cursor: cursor, Count: count})
	return a.Holds, a.Next
}

func (r awayReads) Top(v engine.Verdict, n int) []engine.Heavy {
	return r.ask(&question{What: askTop, Verdict: v, Count: n}).Top
}

func (r awayReads) Events(group int, after uint64, n int) (
	[]engine.Event, engine.EventsPosition, <-chan struct{},
) {
	a := r.ask(&question{What: askEvents, Group: group, Cursor: after, Count: n})
	if n == 0 || len(a.Events) > 0 { // the caller does not wait
		return a.Events, a.Position, nil
	}
	return a.Events, a.Position, r.newEvents(a.Position)
}

func (r awayReads) EventsBefore(group int, atMs int64) uint64 {
	return r.ask(&question{What: askEventsBefore, Group: group, AtMs: atMs}).Next
}

// watchEvery is how often a node looks for new events of a group that is away, while a caller waits for them.
const watchEvery = 250 * time.Millisecond

// newEvents returns a channel that is closed when the group has events after a position. All callers that wait share
// one goroutine.
func (a *away) newEvents(at engine.EventsPosition) <-chan struct{} {
	a.watching.Lock()
	defer a.watching.Unlock()
	if a.wake == nil {
		wake := make(chan struct{})
		a.wake = wake
		a.tasks.Go(func() { a.watch(at, wake) })
	}
	return a.wake
}

// watch closes wake when the group has other events than at a position. It also does when the group cannot be read, so
// that the callers learn it, and after a while, because they may have gone.
func (a *away) watch(at engine.EventsPosition, wake chan struct{}) {
	defer func() {
		a.watching.Lock()
		defer a.watching.Unlock()
		a.wake = nil
		close(wake)
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for end := time.Now().Add(watchFor); time.Now().Before(end); {
		select {
		case <-a.life.Done():
			return
		case <-tick.C:
		}
		got, err := a.read(&question{What: askEvents, Group: a.group, Cursor: at.Last, Count: 1})
		if err != nil || got.Position != at {
			return
		}
	}
}

// watchFor bounds how long a node looks for events without a new question of a caller.
const watchFor = 30 * time.Second

// follow makes a node that has the group bring it to a version of the shared items.
func (a *away) follow(version uint64) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(version); err != nil {
		return err
	}
	return a.ask(calls.Follow, b.Bytes())
}

// followTo brings a group of this node to a version of the shared items.
func (n *Node) followTo(g *raftstore.Node, body []byte) error {
	var version uint64
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&version); err != nil {
		return err
	}
	if g.SharedVersion() >= version {
		return nil
	}
	want, err := n.sharedAt(version)
	if err != nil {
		return err
	}
	return n.bring(g, want)
}
