package engine_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// logs is a table with two logs, each with many units that were already drained. One belongs to policy "log" and key
// "k", and the other to key "plain".
type logs struct {
	*holds
	stored entries
}

var keptLimit = engine.Limit{Algorithm: engine.SlidingLog, WindowNs: 100e9, Max: 1000}

func newLogs(t *testing.T) *logs {
	l := &logs{newHolds(t, map[string]engine.Limit{"log": keptLimit}), entries{}}
	l.table = metaTable(4)
	l.do(setPolicy("log", engine.Policy{Limits: []engine.PolicyLimit{{Limit: keptLimit}}}))
	for range 100 {
		l.add()
	}
	l.drain()
	return l
}

func (l *logs) plain(cost int64) engine.Op {
	return engine.Op{Key: []byte("plain"), Limit: keptLimit, Cost: cost}
}

// add adds a unit to each log.
func (l *logs) add() {
	l.pass(1e6 + 1)
	require.EqualValues(l.t, 1, l.do(check(1, "log", "k")).Allowed)
	require.EqualValues(l.t, 1, l.do(l.plain(1)).Allowed)
}

// drain returns the drained changes and the length of their values.
func (l *logs) drain() (changes []engine.Change, length int) {
	require.NoError(l.t, l.table.Drain(100, func(chunk []engine.Change) error {
		for _, c := range chunk {
			changes = append(changes, engine.Change{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value)})
			length += len(c.Value)
		}
		return into(l.t, l.stored)(chunk)
	}))
	return changes, length
}

// requireStored loads the drained changes and requires the same state.
func (l *logs) requireStored() *engine.Table {
	again := loaded(l.t, l.at, l.stored, 1)
	require.Equal(l.t, l.table.StateHash(l.at), again.StateHash(l.at))
	return again
}

func TestALogThatGainsIsStoredByWhatItGained(t *testing.T) {
	l := newLogs(t)
	for range 10 {
		l.add()
		l.add()
		_, length := l.drain()
		require.Less(t, length, 2*40)
		l.requireStored()
	}
	l.pass(keptLimit.WindowNs - 50e6) // half of the units leave the window
	l.add()
	_, length := l.drain()
	require.Less(t, length, 2*40)
	l.requireStored()
}

// TestALoadedLogIsNotLonger checks that a loaded log only has the units of its window, although a journal may have
// units of many windows.
func TestALoadedLogIsNotLonger(t *testing.T) {
	l := newLogs(t)
	for range 1000 {
		l.pass(keptLimit.WindowNs / 10)
		l.add()
		l.drain()
	}
	_, bytes := l.table.Usage()
	_, loadedBytes := l.requireStored().Usage()
	require.LessOrEqual(t, loadedBytes, bytes)
}

// TestALoadedLogIsBounded checks that a log with many expired units loads without them. Otherwise it would be too
// long to be loaded again.
func TestALoadedLogIsBounded(t *testing.T) {
	l := newLogs(t)
	half := engine.Op{Key: []byte("long"), Limit: keptLimit, Cost: engine.MaxLogUnits / 2}
	half.Limit.Max = engine.MaxLogUnits
	for n := range 3 {
		l.pass(half.Limit.WindowNs / 2)
		require.EqualValues(t, 1, l.do(half).Allowed)
		if n > 0 {
			l.drain()
		}
	}
	l.table, l.stored = l.requireStored(), entries{}
	require.Zero(t, l.table.Renew(0, 1000))
	l.drain()
	l.requireStored()
}

// TestALogIsStoredWhole checks that a log is stored whole if its new units do not describe the change.
func TestALogIsStoredWhole(t *testing.T) {
	longer := keptLimit
	longer.WindowNs *= 2
	for name, change := range map[string]func(l *logs){
		"refunded":      func(l *logs) { l.do(engine.Op{Code: engine.OpRefund, Key: []byte("plain"), Cost: 5}) },
		"another limit": func(l *logs) { l.do(engine.Op{Key: []byte("plain"), Limit: longer, Cost: 1}) },
		"all new":       func(l *logs) { l.pass(keptLimit.WindowNs) },
		"removed":       func(l *logs) { l.do(engine.Op{Code: engine.OpReset, Key: []byte("plain")}) },
		"renewed":       func(l *logs) { require.Zero(l.t, l.table.Renew(0, 1000)) },
		"loaded":        func(l *logs) { l.table = loaded(l.t, l.at, l.stored, 2) },
		"given back": func(l *logs) {
			l.do(reserve("h", 5, 10e9, "log", "k"))
			l.add()
			l.drain()
			l.do(
				commit("h", 1))
		},
		"a block is cut": func(l *logs) { l.do(engine.Op{Code: engine.OpRefund, Key: []byte("plain"), Cost: 90}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogs(t)
			l.add()
			change(l)
			l.drain()
			l.requireStored()
			l.add()
			l.drain()
			l.requireStored()
		})
	}
}

// TestWhatALogGainedLoadsAlone checks that the new units of a log load without the earlier ones when those have left
// the window.
func TestWhatALogGainedLoadsAlone(t *testing.T) {
	l := newLogs(t)
	l.pass(keptLimit.WindowNs / 2)
	l.add()
	l.drain()
	l.pass(keptLimit.WindowNs/2 + 1)
	require.EqualValues(t, keptLimit.Max-1, decideAt(l.requireStored(), l.at, l.plain(0)).Remaining)
}

// TestARewritePassHandsOutLogsWhole checks that a rewrite pass stores whole logs, so that earlier changes are no
// longer needed.
func TestARewritePassHandsOutLogsWhole(t *testing.T) {
	l := newLogs(t)
	l.add()
	l.stored = entries{}
	require.Zero(t, l.table.Renew(0, 1000))
	l.drain()
	l.requireStored()
}

// TestLoadRefusesMoreOfSomethingElse checks that new units of a log are refused if they cannot belong to the stored
// entry.
func TestLoadRefusesMoreOfSomethingElse(t *testing.T) {
	l := newLogs(t)
	l.do(l.plain(1))
	changes, _ := l.drain()
	require.Len(t, changes, 1)
	key, more := changes[0].Key, changes[0].Value
	longer := keptLimit
	longer.WindowNs *= 2
	for name, other := range map[string]engine.Limit{"another limit": longer,
		"another algorithm": bucketOf(1, 1e9, 10)} {
		t.Run(name, func(t *testing.T) {
			table := metaTable(1)
			decideAt(table, l.at, engine.Op{Key: []byte("plain"), Limit: other, Cost: 1})
			err := loadOne(table, l.at, key, more)
			require.ErrorIs(t, err, engine.ErrStored)
		})
	}
	t.Run("a bucket", func(t *testing.T) {
		l.do(engine.Op{Key: []byte("bucket"), Limit: bucketOf(1, 1e9, 10), Cost: 1})
		changes, _ := l.drain()
		require.Len(t, changes, 1)
		key, whole := changes[0].Key, changes[0].Value
		err := loadOne(metaTable(1), l.at, key, whole)
		require.NoError(t, err)
		err = loadOne(metaTable(1), l.at, key, append([]byte{more[0]&0x80 | whole[0]}, whole[1:]...))
		require.ErrorIs(t, err, engine.ErrStored)
	})
}
