package limiter

import (
	"math"
	"slices"
	"sync"

	"github.com/weir-project/weir/engine"
)

// Clients of different databases may send one name for different keys. A Limiter knows stored names only, which have
// the database (engine.AppendStored), and everything above it knows only the names that clients send. The two types of
// this file are the only place where names change: Databases on the way in, and back when the operations return, and
// databaseView on the way out.

// Databases is a Limiter whose operations have the names that clients send, each in its Op.Database. Its methods may be
// called from any goroutine.
type Databases struct {
	Decider
	names sync.Pool // of *storedNames
}

// NewDatabases returns the databases of a Limiter.
func NewDatabases(l Limiter) *Databases {
	return &Databases{Decider: l, names: sync.Pool{New: func() any { return new(storedNames) }}}
}

// Backend returns the Limiter, for the optional interfaces that it may implement.
func (d *Databases) Backend() Decider { return d.Decider }

// Decide executes a pipeline; see Decider. All of its operations are of one database: a client decides what it has sent
// before it selects another one. Then a decision in database 0 costs nothing more.
func (d *Databases) Decide(ops []engine.Op, out []engine.Decision) error {
	if len(ops) == 0 || ops[0].Database == 0 {
		return d.Decider.Decide(ops, out)
	}
	names := d.names.Get().(*storedNames)
	defer d.names.Put(names)
	names.replace(ops)
	defer names.restore(ops)
	return d.Decider.Decide(ops, out)
}

// DecideAtomic executes a transaction; see Decider. Its operations may be of several databases.
func (d *Databases) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	names := d.names.Get().(*storedNames)
	defer d.names.Put(names)
	names.replace(ops)
	defer names.restore(ops)
	return d.Decider.DecideAtomic(ops, out)
}

// storedNames are the stored names of operations while they are decided.
type storedNames struct {
	bytes []byte   // of the stored names
	sent  [][]byte // the names that clients sent, in the order of each
}

// each calls visit with the names in an operation that belong to its database.
func (n *storedNames) each(op *engine.Op, visit func(name *[]byte)) {
	switch op.Code {
	case engine.OpPolicy, engine.OpBlockEverywhere, engine.OpFollow, engine.OpFlush: // of all databases
		return
	case engine.OpReserve:
		visit(&op.ID)
	}
	visit(&op.Key)
	for i := range op.Also {
		visit(&op.Also[i].Key)
	}
}

func (n *storedNames) replace(ops []engine.Op) {
	for i := range ops {
		if ops[i].Database == 0 {
			continue
		}
		n.each(&ops[i], func(name *[]byte) {
			from := len(n.bytes)
			n.bytes = engine.AppendStored(n.bytes, int(ops[i].Database), *name)
			n.sent = append(n.sent, *name)
			*name = n.bytes[from:len(n.bytes):len(n.bytes)]
		})
	}
}

func (n *storedNames) restore(ops []engine.Op) {
	at := 0
	for i := range ops {
		if ops[i].Database == 0 {
			continue
		}
		n.each(&ops[i], func(name *[]byte) {
			*name = n.sent[at]
			at++
		})
	}
	clear(n.sent)
	n.bytes, n.sent = n.bytes[:0], n.sent[:0]
}

// databaseView is the view of one database. The methods that it does not have read what is common to all.
type databaseView struct {
	State
	database int
	groups   []int // that Scan visits; nil: all
}

// ViewOf returns what clients of a database see of a state.
func ViewOf(s State, database int) View { return &databaseView{State: s, database: database} }

// stored returns the stored name of a key. ok is false for a name that no client may send.
func (v *databaseView) stored(name []byte) (stored []byte, ok bool) {
	if v.database == 0 {
		return name, !engine.IsStored(name)
	}
	return engine.AppendStored(nil, v.database, name), true
}

func (v *databaseView) Len() int64 { return v.State.Len(v.database) }

func (v *databaseView) RandomKey() []byte {
	_, name := engine.CutDatabase(v.State.RandomKey(v.database))
	return name
}

func (v *databaseView) Inspect(name []byte) (info engine.Info, found bool) {
	stored, ok := v.stored(name)
	if !ok {
		return info, false
	}
	info, found = v.State.Inspect(stored)
	if info.BlockedBy == string(stored) {
		info.BlockedBy = string(name)
	}
	return info, found
}

func (v *databaseView) Scan(cursor uint64, count int, visit func(name []byte, a engine.Algorithm)) uint64 {
	if group := int(cursor >> engine.CursorBits); v.groups != nil && !slices.Contains(v.groups, group) {
		next := math.MaxInt
		for _, g := range v.groups {
			if g > group {
				next = min(next, g)
			}
		}
		if next == math.MaxInt {
			return 0
		}
		cursor = uint64(next) << engine.CursorBits
	}
	return v.State.Scan(cursor, count, func(stored []byte, a engine.Algorithm) {
		if database, name := engine.CutDatabase(stored); database == v.database {
			visit(name, a)
		}
	})
}

func (v *databaseView) Holds(policy, name []byte, cursor uint64, count int) (list []engine.OpenHold, next uint64) {
	stored, ok := v.stored(name)
	if !ok {
		return nil, 0
	}
	list, next = v.State.Holds(policy, stored, cursor, count)
	for i := range list {
		_, list[i].ID = engine.CutDatabase(list[i].ID)
	}
	return list, next
}

func (v *databaseView) Top(verdict engine.Verdict, n int) (top []engine.Heavy) {
	for _, heavy := range v.State.Top(verdict, math.MaxInt) {
		if database, name := engine.CutDatabase(heavy.Key); database == v.database && len(top) < n {
			heavy.Key = name
			top = append(top, heavy)
		}
	}
	return top
}

func (v *databaseView) Events(group int, after uint64, n int) (
	list []engine.Event, at engine.EventsPosition, wake <-chan struct{},
) {
	list, at, wake = v.State.Events(group, after, n)
	for i := range list {
		e := &list[i]
		database, name := engine.CutDatabase([]byte(e.Key))
		if database == 0 {
			continue
		}
		_, id := engine.CutDatabase([]byte(e.ID))
		e.Database, e.Key, e.ID = database, string(name), string(id)
	}
	return list, at, wake
}
