package away

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

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

// read asks a node that has the group.
func (g *Group) read(q *question) (*answer, error) { return g.askWith(q, g.config.MaxAge, g.readAny) }

// askWith asks a question by a call.
func (g *Group) askWith(q *question, within time.Duration, call func(context.Context, []byte) (byte, []byte, error)) (
	*answer, error,
) {
	var b bytes.Buffer
	b.Write(Head(g.config.Group, calls.Read))
	if err := gob.NewEncoder(&b).Encode(q); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(g.config.Life, within)
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

// explain answers operations that are all Dry.
func (g *Group) explain(ops []engine.Op, out []engine.Decision) error {
	for i := range ops {
		if !wire.Valid(&ops[i]) {
			return errors.New("an operation that no client sends")
		}
	}
	var e wire.Encoder
	got, err := g.read(&question{What: askExplain, Ops: e.Call(nil, ops, false)})
	if err != nil {
		return err
	}
	return wire.ReadDecisions(got.Out, out)
}

// Reads are the reads of a group, for one caller.
type Reads struct {
	group  *Group
	failed func(error)
}

// Reading returns the reads for a caller that is told of each failure.
func (g *Group) Reading(failed func(error)) Reads { return Reads{g, failed} }

// ask returns the answer to a question, or an empty one after it has told the caller that the read failed.
func (r Reads) ask(q *question) *answer {
	a, err := r.group.read(q)
	if err != nil {
		r.failed(err)
		return &answer{}
	}
	return a
}

func (r Reads) Inspect(key []byte) (engine.Info, bool) {
	a := r.ask(&question{What: askInspect, Key: key})
	return a.Info, a.Found
}

func (r Reads) Len(database int) int64 {
	return r.ask(&question{What: askLen, Database: database}).Number
}

func (r Reads) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	a := r.ask(&question{What: askScan, Cursor: cursor, Count: count})
	for _, k := range a.Keys {
		visit(k.Key, k.Algorithm)
	}
	return a.Next
}

func (r Reads) RandomKey(database int) []byte {
	return r.ask(&question{What: askRandom, Database: database}).Key
}

func (r Reads) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	a := r.ask(&question{What: askHolds, Policy: policy, Key: key, Cursor: cursor, Count: count})
	return a.Holds, a.Next
}

func (r Reads) Top(v engine.Verdict, n int) []engine.Heavy {
	return r.ask(&question{What: askTop, Verdict: v, Count: n}).Top
}

func (r Reads) Events(group int, after uint64, n int) (
	[]engine.Event, engine.EventsPosition, <-chan struct{},
) {
	a := r.ask(&question{What: askEvents, Group: group, Cursor: after, Count: n})
	if n == 0 || len(a.Events) > 0 { // the caller does not wait
		return a.Events, a.Position, nil
	}
	return a.Events, a.Position, r.group.newEvents(a.Position)
}

func (r Reads) EventsBefore(group int, atMs int64) uint64 {
	return r.ask(&question{What: askEventsBefore, Group: group, AtMs: atMs}).Next
}

// watchEvery is how often a node looks for new events of a group that is away, while a caller waits for them.
const watchEvery = 250 * time.Millisecond

// newEvents returns a channel that is closed when the group has events after a position. All callers that wait at one
// position share a goroutine. Another position means that one of them has read events that the others lack.
func (g *Group) newEvents(at engine.EventsPosition) <-chan struct{} {
	g.watching.Lock()
	defer g.watching.Unlock()
	if g.wake != nil && g.watched != at {
		changed := make(chan struct{})
		close(changed)
		return changed
	}
	if g.wake == nil {
		wake := make(chan struct{})
		g.wake, g.watched = wake, at
		g.config.Tasks.Go(func() { g.watch(at, wake) })
	}
	return g.wake
}

// watch closes wake when the group has other events than at a position. It also does when the group cannot be read, so
// that the callers learn it, and after a while, because they may have gone.
func (g *Group) watch(at engine.EventsPosition, wake chan struct{}) {
	defer func() {
		g.watching.Lock()
		defer g.watching.Unlock()
		g.wake = nil
		close(wake)
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for end := time.Now().Add(watchFor); time.Now().Before(end); {
		select {
		case <-g.config.Life.Done():
			return
		case <-tick.C:
		}
		got, err := g.read(&question{What: askEvents, Group: g.config.Group, Cursor: at.Last, Count: 1})
		if err != nil || got.Position != at {
			return
		}
	}
}

// watchFor bounds how long a node looks for events without a new question of a caller.
const watchFor = 30 * time.Second

// Follow makes a node that has the group bring it to a version of the shared items.
func (g *Group) Follow(version uint64) error {
	return g.ask(calls.Follow, binary.LittleEndian.AppendUint64(nil, version))
}
