package limiter

import (
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

// Spread is a State some of whose groups are on other nodes only. Their reads may fail, and a State returns no errors.
type Spread interface {
	// Reading returns the State for one read of one caller. It calls failed with each error, and the result of a read
	// that failed is worth nothing. Reads of groups on other nodes are linearizable by themselves.
	Reading(failed func(error)) State
}

// View is a State as clients of one database see it. It has keys of this database only, by the names that clients send.
// A Reader gives views that are linearizable, or whose age is known.
type View interface {
	Len() int64
	RandomKey() []byte
	reads
}

// reads are what State and View read alike.
type reads interface {
	// Inspect and Scan read the keys. See engine.Table.
	Inspect(key []byte) (engine.Info, bool)
	Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64
	// Holds lists the open holds under a policy and a key. See engine.Table.
	Holds(policy, key []byte, cursor uint64, count int) (list []engine.OpenHold, next uint64)
	// BlocksEverywhere reads the blocks everywhere, which are common to all databases. See
	// engine.Table.BlocksEverywhere.
	BlocksEverywhere() engine.BlocksEverywhere
	// FromBlock describes the block of an address. See engine.Table.FromBlock.
	FromBlock(key []byte) engine.FromBlock
	// Top returns the heaviest keys of this node. See engine.Table.Top.
	Top(v engine.Verdict, n int) []engine.Heavy
	// Events and EventsBefore read the log of events of a Raft group, counted from 0. See engine.Table.Events. A group
	// that has ended here has none. A View also has the events of other databases: see Event.Database.
	Events(group int, after uint64, n int) ([]engine.Event, engine.EventsPosition, <-chan struct{})
	EventsBefore(group int, atMs int64) uint64
	// Policies returns the policies in force, which are common to all databases. The result is immutable.
	Policies() *engine.Policies
}

// Scope returns the numbers of the Raft groups that a read depends on, or whole for all of them.
type Scope func(t *Topology) (groups []int, whole bool)

// Reader gives one client views of a Limiter. Its methods belong to one goroutine.
//
// Reads in a cluster are linearizable on every node. Before a node reads its own state, it waits until it has applied
// every entry that was acknowledged anywhere (ReadIndex). One ReadIndex serves a run of reads that arrived together. A
// stale read asks no other node, works without a leader, and has an upper bound of its age.
type Reader struct {
	Stale    bool // reads are stale
	Database int  // whose keys the views have

	state   State
	replica Replica // nil: the Limiter runs alone
	// whole and groups are what the ReadIndexes of this run of reads cover: the whole state, or these groups.
	whole  bool
	groups []int
}

// NewReader returns a Reader of linearizable reads.
func NewReader(l Limiter) Reader {
	replica, _ := l.(Replica)
	return Reader{state: l, replica: replica}
}

// End ends a run of reads. The next Read needs a new ReadIndex.
func (r *Reader) End() { r.whole, r.groups = false, r.groups[:0] }

// Read returns a View of the state that the scope names, and an upper bound of its age: 0 if it is linearizable. A nil
// scope is the whole state. Errors are as of Replica.ReadIndex.
func (r *Reader) Read(scope Scope) (View, time.Duration, error) {
	if r.replica == nil || r.whole {
		return r.view(), 0, nil
	}
	if scope != nil {
		t := r.replica.Topology()
		if groups, whole := scope(t); !whole {
			return r.readGroups(t, groups)
		}
	}
	if r.Stale {
		return r.view(), r.replica.StaleFor(), nil // taken before the read, so the state that is read is not older
	}
	if err := r.replica.ReadIndex(); err != nil {
		return nil, 0, err
	}
	r.whole = true
	return r.view(), 0, nil
}

func (r *Reader) view() View { return ViewOf(r.state, r.Database) }

// readGroups is Read for some groups.
func (r *Reader) readGroups(t *Topology, groups []int) (View, time.Duration, error) {
	oldest := time.Duration(0)
	for _, g := range groups {
		slot := t.Groups[g].Slots.First
		switch {
		case r.Stale:
			oldest = max(oldest, r.replica.StaleForOf(slot))
		case !slices.Contains(r.groups, g):
			if err := r.replica.ReadIndexOf(slot); err != nil {
				return nil, 0, err
			}
			r.groups = append(r.groups, g)
		}
	}
	return r.view(), oldest, nil
}
