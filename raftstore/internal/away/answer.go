package away

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// Replica is a replica of a group, of which another node asks.
type Replica interface {
	Led() (led host.Led, leads bool)
	LookAtMembers()
	ReadIndex() error
	Decide(ops []engine.Op, out []engine.Decision) error
	State
	limiter.Archiver
}

// State is what a caller reads of one group, here or elsewhere.
type State interface {
	Inspect(key []byte) (engine.Info, bool)
	Len(database int) int64
	Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64
	RandomKey(database int) []byte
	Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64)
	Top(v engine.Verdict, n int) []engine.Heavy
	Events(group int, after uint64, n int) ([]engine.Event, engine.EventsPosition, <-chan struct{})
	EventsBefore(group int, atMs int64) uint64
}

var _ State = Reads{}

// Answer answers the question of another node about a replica of this one.
func Answer(group int, g Replica, backups *Backups, body []byte) (status byte, said []byte) {
	var q question
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&q); err != nil {
		return calls.Refused, []byte(err.Error())
	}
	var b bytes.Buffer
	a, err := readHere(group, g, backups, &q)
	if err == nil {
		err = gob.NewEncoder(&b).Encode(a)
	}
	if err == nil && b.Len() > peer.MaxPayload {
		err = fmt.Errorf("the answer has %d bytes, and a message between nodes at most %d: ask for less", b.Len(),
			peer.MaxPayload)
	}
	return calls.Reply(b.Bytes(), err)
}

// readHere reads a replica of this node.
func readHere(group int, g Replica, backups *Backups, q *question) (a *answer, err error) {
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
		a.Next, a.Number, err = backups.begin(group, g)
	default:
		return nil, fmt.Errorf("this version of weir does not know the question %q", q.What)
	}
	return a, err
}

// explainHere answers encoded operations that are all Dry.
func explainHere(g Replica, body []byte) ([]byte, error) {
	var d wire.Decoder
	d.Reset(body)
	ops, _, _, err := d.Append(nil)
	if err != nil || !pipeline.AllDry(ops) {
		return nil, errors.Join(err, errors.New("a question that decides"))
	}
	out := make([]engine.Decision, len(ops))
	if err := g.Decide(ops, out); err != nil {
		return nil, err
	}
	return wire.AppendDecisions(nil, out, wire.Version), nil
}
