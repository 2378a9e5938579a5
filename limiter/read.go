package limiter

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
)

// State is the state that a node has, under the names that it stores: see engine.AppendStored.
type State interface {
	// Len returns the number of keys of a database. See engine.Table.
	Len(database int) int64
	// RandomKey returns a random key of a database, or nil. See engine.Table.
	RandomKey(database int) []byte
	reads
}

// Spread is a State some of whose groups are on other nodes only. By itself it has the keys and events of this node's
// groups, asks no other node and never fails.
type Spread interface {
	// Reading returns the State of all groups for one run of reads of one goroutine, which may wait for events for an
	// hour. A read of a group that this node did not have at the call, or has no longer, asks another node, and is
	// linearizable by itself. If a read fails, it calls failed with the error before it returns. Its result is worth
	// nothing, and the State is read no more. One Scan reads either groups of this node or one other group.
	Reading(failed func(error)) State
}

// View is a State as clients of one database see it. It has keys of this database only, by the names that clients send.
// A Reader gives views that are linearizable, or whose age is known.
type View interface {
	Len() int64
	RandomKey() []byte
	reads
}

// Common are the reads of what all databases and all nodes have: every node follows the first group.
type Common interface {
	// BlocksEverywhere reads the blocks everywhere. See engine.Table.BlocksEverywhere.
	BlocksEverywhere() engine.BlocksEverywhere
	// FromBlock describes the block of an address. See engine.Table.FromBlock.
	FromBlock(key []byte) engine.FromBlock
	// Policies returns the policies in force. The result is immutable.
	Policies() *engine.Policies
}

// reads are what State and View read alike.
type reads interface {
	Common
	// Inspect and Scan read the keys. See engine.Table. With several groups a cursor has the number of a group above
	// engine.CursorBits.
	Inspect(key []byte) (engine.Info, bool)
	Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64
	// Holds lists the open holds under a policy and a key. See engine.Table.
	Holds(policy, key []byte, cursor uint64, count int) (list []engine.OpenHold, next uint64)
	// Top returns the heaviest keys as one replica of each group counts them. See engine.Table.Top.
	Top(v engine.Verdict, n int) []engine.Heavy
	// Events and EventsBefore read the log of events of a Raft group, counted from 0. See engine.Table.Events. A group
	// that has ended here has none. A View also has the events of other databases: see Event.Database.
	Events(group int, after uint64, n int) ([]engine.Event, engine.EventsPosition, <-chan struct{})
	EventsBefore(group int, atMs int64) uint64
}

// Scope returns the numbers of the Raft groups that a read depends on, or whole for all of them.
type Scope func(t *Topology) (groups []int, whole bool)

// Reader gives one client views of a Limiter. Its methods belong to one goroutine, and it must not be copied after the
// first Read.
//
// Reads in a cluster are linearizable on every node. Before a node reads its own state, it waits until it has applied
// every entry that was acknowledged anywhere (ReadIndex). One ReadIndex serves a run of reads that arrived together. A
// stale read works without a leader, and has an upper bound of its age. It asks another node only for groups that this
// node does not have, and is then linearizable.
type Reader struct {
	Stale    bool // reads are stale
	Database int  // whose keys the views have

	state   State
	replica Replica // nil: the Limiter runs alone
	// run is the state that this run of reads reads; nil: the run has not begun. Spread.Reading must precede the
	// ReadIndexes, because a group may arrive at this node between the two.
	run State
	// whole and groups are what the ReadIndexes of this run of reads cover: the whole state, or these groups.
	whole  bool
	groups []int
	view   *databaseView // of the running Read, else nil
	failed error         // the first error of the running Read
}

// NewReader returns a Reader of linearizable reads.
func NewReader(l Limiter) Reader {
	replica, _ := l.(Replica)
	return Reader{state: l, replica: replica}
}

// End ends a run of reads. The next Read needs a new ReadIndex.
func (r *Reader) End() { r.run, r.whole, r.groups = nil, false, r.groups[:0] }

// Read calls use with a View of the state that the scope names, and an upper bound of its age: 0 if it is linearizable.
// A nil scope is the whole state. The View ends with use. Errors are as of Replica.ReadIndex: after an error, use was
// not called, or what it made of the View is worth nothing.
func (r *Reader) Read(scope Scope, use func(v View, age time.Duration)) error {
	if r.run == nil {
		r.run = r.state
		if spread, ok := r.state.(Spread); ok {
			r.run = spread.Reading(r.fail)
		}
	}
	groups, age, err := r.readIndex(scope)
	if err != nil {
		return err
	}
	r.view = &databaseView{r.run, r.Database, groups}
	use(r.view, age)
	err, r.view.State = r.failed, nil
	r.view, r.failed = nil, nil
	if err != nil {
		r.End()
	}
	return err
}

// Failed returns the first error of the reads in the running Read, or nil.
func (r *Reader) Failed() error { return r.failed }

// fail takes note of a read that failed. The View then reads no keys and no events, so that a command on many keys does
// not wait for a silent group many times.
func (r *Reader) fail(err error) {
	if r.view == nil || r.failed != nil {
		return
	}
	if OutcomeOf(err).MayBeDone() { // a read does nothing
		err = fmt.Errorf("%w: %w", ErrTryAgain, err)
	}
	r.failed, r.view.State = err, unread{r.view.State}
}

// readIndex makes the next read of a scope linearizable, or returns its age. groups are those of the scope; nil: all.
func (r *Reader) readIndex(scope Scope) (groups []int, age time.Duration, err error) {
	if r.replica == nil {
		return nil, 0, nil
	}
	if scope != nil {
		t := r.replica.Topology()
		if groups, whole := scope(t); !whole {
			age, err = r.readIndexOf(t, groups)
			return groups, age, err
		}
	}
	switch {
	case r.whole:
	case r.Stale:
		age = r.replica.StaleFor() // taken before the read, so the state that is read is not older
	default:
		err = r.replica.ReadIndex()
		r.whole = err == nil
	}
	return nil, age, err
}

// readIndexOf is readIndex for some groups.
func (r *Reader) readIndexOf(t *Topology, groups []int) (oldest time.Duration, err error) {
	for _, g := range groups {
		slot := t.Groups[g].Slots.First
		switch {
		case r.whole:
		case r.Stale:
			oldest = max(oldest, r.replica.StaleForOf(slot))
		case !slices.Contains(r.groups, g):
			if err := r.replica.ReadIndexOf(slot); err != nil {
				return 0, err
			}
			r.groups = append(r.groups, g)
		}
	}
	return oldest, nil
}

// unread is a State after a read of it has failed: it has no keys and no events.
type unread struct{ State }

func (unread) Len(int) int64                                                 { return 0 }
func (unread) RandomKey(int) []byte                                          { return nil }
func (unread) Inspect([]byte) (engine.Info, bool)                            { return engine.Info{}, false }
func (unread) Scan(uint64, int, func([]byte, engine.Algorithm)) uint64       { return 0 }
func (unread) Holds([]byte, []byte, uint64, int) ([]engine.OpenHold, uint64) { return nil, 0 }
func (unread) Top(engine.Verdict, int) []engine.Heavy                        { return nil }
func (unread) EventsBefore(int, int64) uint64                                { return 0 }
func (unread) Events(int, uint64, int) ([]engine.Event, engine.EventsPosition, <-chan struct{}) {
	return nil, engine.EventsPosition{First: 1}, nil
}
