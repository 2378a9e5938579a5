package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// untold reports whether an event must tell the end of a hold, now or later.
func (x *heldHold) untold() bool { return x.records && (x.phase == "open" || x.phase == "ended") }

// recorded reports whether a policy of a hold has RECORD.
func (m *holdModel) recorded(op *engine.Op) bool {
	return slices.ContainsFunc(pairsOf(op), func(p engine.Pair) bool { return m.records[string(p.Policy)] })
}

// tellEnd writes the events of a hold that has ended by itself, once.
func (m *holdModel) tellEnd(x *heldHold) bool {
	if x == nil || x.phase != "ended" || !x.records {
		return false
	}
	cost := x.actual
	if x.op.Keep {
		cost = x.total
	}
	m.tell("expired", x, cost)
	x.phase = "expired"
	return true
}

// tell writes what each source of a hold has paid of a cost that no event has told.
func (m *holdModel) tell(kind string, x *heldHold, cost int64) {
	back := x.giveBack(max(x.total-cost, 0))
	for i, s := range x.sources {
		paid := s.taken - back[i]
		if s == x.lastSource() {
			paid += max(cost-x.total, 0)
		} else if s.taken == 0 {
			continue
		}
		for _, p := range s.pairs {
			if m.records[string(p.Policy)] {
				m.events = append(m.events, fmt.Sprintf("%s %s %s %s %d", kind, p.Policy, p.Key, x.op.ID, paid-s.told))
			}
		}
		s.told = paid
	}
}

// compareEvents compares the events since the last call with the table's, and returns how many holds have expired.
func (m *holdModel) compareEvents(t *testing.T, table *engine.Table) (expired int) {
	list, at, _ := table.Events(m.read, 1000)
	var got []string
	for i := range list {
		e := &list[i]
		got = append(got, fmt.Sprintf("%s %s %s %s %d", e.Kind, e.Policy, e.Key, e.ID, e.Amount))
		expired += int(one(e.Kind == engine.EventExpired))
	}
	require.Equal(t, m.events, got)
	m.events, m.read = nil, at.Last
	return expired
}

// endings are tables with other shards that carry out the same operations.
type endings struct {
	t      *testing.T
	tables []*engine.Table
	at     engine.Stamp
	read   uint64
}

func newEndings(t *testing.T) *endings {
	e := &endings{t: t, at: engine.Stamp{NowNs: 1e18}}
	for _, shards := range []int{1, 8, 64} {
		e.tables = append(e.tables, engine.NewTable(engine.Options{Shards: shards, TrackChanges: true,
			WhenFull: engine.Replica, EventsBytes: 64 << 20}))
	}
	e.policy("p", true)
	e.policy("q", true)
	return e
}

func (e *endings) do(ops ...engine.Op) (first []engine.Decision) {
	for i, table := range e.tables {
		out := make([]engine.Decision, len(ops))
		table.Decide(e.at, ops, out)
		if i == 0 {
			first = out
		}
		require.Equal(e.t, first, out)
	}
	return first
}

func (e *endings) policy(name string, record bool) {
	e.do(setPolicy(name, engine.Policy{Record: record, Limits: []engine.PolicyLimit{
		{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 100}},
	}}))
}

// pass lets time pass on all tables, which collect.
func (e *endings) pass(ns int64) {
	e.at.NowNs += ns
	for i, table := range e.tables {
		if table.Collect(e.at, 1<<20); i == 0 {
			table.Len(e.at) // collects at once
		}
	}
}

// tell lets all tables tell the ends that one of them has found, and returns how many these are.
func (e *endings) tell(finder int) (told int) {
	for {
		ops := e.tables[finder].Ended(engine.MaxEnds)
		if len(ops) == 0 {
			return told
		}
		require.LessOrEqual(e.t, len(ops), engine.MaxEnds+64, "a batch is bounded")
		for _, d := range e.do(ops...) {
			require.Equal(e.t, engine.Decision{Allowed: 1}, d)
		}
		told += len(ops)
	}
}

// events returns the new events, which all tables have, and checks that the tables agree.
func (e *endings) events() (texts []string) {
	var last uint64
	for i, table := range e.tables {
		require.Equal(e.t, e.tables[0].StateHash(e.at), table.StateHash(e.at))
		list, at, _ := table.Events(e.read, 1<<20)
		var own []string
		for i := range list {
			x := &list[i]
			own = append(own, fmt.Sprintf("%s %s %s %s %d, %d/%d", x.Kind, x.Policy, x.Key, x.ID, x.Amount, x.Used,
				x.Limit))
		}
		if i == 0 {
			texts, last = own, at.Last
		}
		require.Equal(e.t, texts, own)
	}
	e.read = last
	return texts
}

// restart replaces all tables by tables that have loaded their state.
func (e *endings) restart() {
	for i := range e.tables {
		e.tables[i] = stored(e.t, e.tables[i], e.at)
	}
}

func keeps(op engine.Op) engine.Op {
	op.Keep = true
	return op
}

func splits(op engine.Op) engine.Op {
	op.Else = 1<<1 | engine.Split
	return op
}

// TestTheEndOfAHoldIsTold checks the events of holds that end by themselves, and of commits and changes around the end.
// "end" passes the end of the hold, and "tell" tells it.
func TestTheEndOfAHoldIsTold(t *testing.T) {
	hold := reserve("h", 30, 10e9, "p", "k")
	both := splits(reserve("h", 120, 10e9, "p", "k", "q", "k"))
	deleted := engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Do: engine.PolicyDelete}}
	renewed := extend("h", 1, 5)
	renewed.TTLNs = 20e9
	for name, c := range map[string]struct {
		steps []any
		want  []string
	}{
		"gives back":     {[]any{hold, "end", "tell"}, []string{"expired p k h 0, 0/100"}},
		"a restart":      {[]any{hold, "restart", "end", "restart", "tell"}, []string{"expired p k h 0, 0/100"}},
		"takes":          {[]any{keeps(hold), "end", "tell"}, []string{"expired p k h 30, 30/100"}},
		"what was used":  {[]any{hold, keeps(commit("h", 12)), "end", "tell"}, []string{"expired p k h 12, 12/100"}},
		"more than held": {[]any{hold, keeps(commit("h", 40)), "end", "tell"}, []string{"expired p k h 40, 40/100"}},
		"alternatives": {[]any{keeps(both), "end", "tell"},
			[]string{"expired p k h 100, 100/100", "expired q k h 20, 20/100"}},
		"committed":      {[]any{hold, commit("h", 5), "end", "tell"}, []string{"settled p k h 5, 5/100"}},
		"cancelled":      {[]any{hold, cancel("h"), "end", "tell"}, []string{"settled p k h 0, 0/100"}},
		"cancelled late": {[]any{hold, "end", cancel("h"), "tell"}, []string{"expired p k h 0, 0/100"}},
		"a late commit": {[]any{hold, "end", "tell", commit("h", 5)},
			[]string{"expired p k h 0, 0/100", "settled p k h 5, 5/100"}},
		"before the tell": {[]any{hold, "end", commit("h", 5), "tell"},
			[]string{"expired p k h 0, 0/100", "settled p k h 5, 5/100"}},
		"restarted": {[]any{hold, keeps(commit("h", 12)), "end", "tell", "restart", commit("h", 15)},
			[]string{"expired p k h 12, 12/100", "settled p k h 3, 15/100"}},
		"less than was taken": {[]any{keeps(hold), "end", "tell", commit("h", 10)},
			[]string{"expired p k h 30, 30/100", "settled p k h -20, 30/100"}},
		"more than was taken": {[]any{keeps(hold), "end", "tell", commit("h", 45)},
			[]string{"expired p k h 30, 30/100", "settled p k h 15, 45/100"}},
		"less, of alternatives": {[]any{keeps(both), "end", "tell", commit("h", 90)},
			[]string{"expired p k h 100, 100/100", "expired q k h 20, 20/100",
				"settled p k h -10, 100/100", "settled q k h -20, 20/100"}},
		"a late cost that was less": {[]any{hold, keeps(commit("h", 12)), "end", commit("h", 11), "tell"},
			[]string{"expired p k h 12, 12/100"}},
		"extended": {[]any{hold, 9999999999, renewed, "end", "tell", 10e9, "tell"},
			[]string{"expired p k h 0, 0/100"}},
		"RECORD is gone": {[]any{keeps(hold), false, "end", "tell"}, nil},
		"RECORD is new": {[]any{false, keeps(hold), true, "end", commit("h", 30)},
			[]string{"settled p k h 30, 30/100"}},
		"and extended": {[]any{false, keeps(hold), true, renewed, 20e9, "tell"},
			[]string{"expired p k h 35, 35/100"}},
		"deleted":        {[]any{keeps(hold), deleted, "end", "tell"}, nil},
		"one is deleted": {[]any{keeps(both), deleted, "end", "tell"}, []string{"expired q k h 20, 20/100"}},
		"long after it": {[]any{keeps(hold), 1000e9, "restart", 1000e9, "tell"},
			[]string{"expired p k h 30, 30/100"}},
		"reset":           {[]any{keeps(hold), reset("p", "k"), "end", "tell"}, []string{"expired p k h 30, 0/100"}},
		"shorter than ms": {[]any{reserve("h", 30, 1, "p", "k"), "end", "tell"}, []string{"expired p k h 0, 0/100"}},
		"denied":          {[]any{reserve("h", 101, 10e9, "p", "k"), "end", "tell"}, nil},
		"two policies": {[]any{reserve("h", 3, 10e9, "p", "k", "q", "l"), "end", "tell"},
			[]string{"expired p k h 0, 0/100", "expired q l h 0, 0/100"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndings(t)
			for _, step := range c.steps {
				e.step(step)
			}
			require.Equal(t, c.want, e.events())
			require.Equal(t, int64(0), e.do(engine.Op{Code: engine.OpEnd, Key: []byte("h"), Cost: 1})[0].Allowed)
			require.Empty(t, e.events(), "an end is told once")
			e.pass(100e9)
			require.Equal(t, engine.NoHold, e.do(commit("h", 1))[0].Status, "a hold whose end is told is forgotten")
		})
	}
}

func (e *endings) step(step any) {
	switch step := step.(type) {
	case engine.Op:
		e.do(step)
	case bool:
		e.policy("p", step)
	case int:
		e.pass(int64(step))
	case float64:
		e.pass(int64(step))
	case string:
		switch step {
		case "end":
			e.pass(10e9 + 20e6)
		case "restart":
			e.restart()
			e.pass(0)
		default:
			e.tell(1)
		}
	}
}

func reset(policy, key string) engine.Op {
	return engine.Op{Code: engine.OpReset, Key: engine.LimiterName(policy, 0, []byte(key)), Cost: 1}
}

// TestAnEndIsFoundInTime checks that an end is found some milliseconds after it, that none is found before it, and that
// a hold which has ended is on no list of open holds and holds nothing.
func TestAnEndIsFoundInTime(t *testing.T) {
	e := newEndings(t)
	for i := range 50 {
		e.do(reserve(fmt.Sprint("h", i), 1, 1e9+int64(i)*1e8, "p", "k"))
	}
	e.at.NowNs += 20e6 // longer than a tick of the wheel
	for i := range 100 {
		e.at.NowNs += 1e8
		e.tables[1].Collect(e.at, 1<<20)
		require.Len(t, e.tables[1].Ended(engine.MaxEnds), min(max(i-8, 0), 50), "after %d20 ms", i+1)
		if e.tables[0].Collect(e.at, 1<<20); i%20 == 0 {
			e.tables[0].Len(e.at) // collects at once, also what becomes idle soon
		}
		require.LessOrEqual(t, len(e.tables[0].Ended(engine.MaxEnds)), max(i-8, 0))
	}
	require.Len(t, e.tables[0].Ended(engine.MaxEnds), 50)
	for i, op := range e.tables[1].Ended(engine.MaxEnds) {
		require.Equal(t, fmt.Sprint("h", i), string(op.Key), "in the order of the ends")
	}
	list, _ := e.tables[1].Holds(e.at, []byte("p"), []byte("k"), 0, 100)
	require.Empty(t, list)
	info, _ := e.tables[1].Inspect(e.at, engine.LimiterName("p", 0, []byte("k")))
	require.Zero(t, info.Holders)
	require.Zero(t, info.Used)
}

// TestManyEndsAtOnce checks that ten thousand holds that end at one moment are told in bounded batches, each once, and
// in the same order by tables with other shards.
func TestManyEndsAtOnce(t *testing.T) {
	e := newEndings(t)
	const n = 10_000
	var ops []engine.Op
	for i := range n {
		ops = append(ops, keeps(reserve(fmt.Sprint("h", i), 1, 10e9, "p", fmt.Sprint("k", i))))
	}
	e.do(ops...)
	e.pass(10e9)
	e.pass(1e9)
	require.Equal(t, n, e.tell(2)+e.tell(0)+e.tell(1))
	texts := e.events()
	require.Len(t, texts, n)
	slices.Sort(texts)
	require.Len(t, slices.Compact(texts), n)
	e.restart()
	for i := range e.tables {
		require.Empty(t, e.tables[i].Ended(engine.MaxEnds))
	}
	e.pass(100e9)
	for i := range n {
		require.Equal(t, engine.NoHold, e.do(commit(fmt.Sprint("h", i), 1))[0].Status)
	}
}

// TestEndsOfAFullTable checks that holds are told in a table whose memory is full, and that their records are no
// victims before that.
func TestEndsOfAFullTable(t *testing.T) {
	table, at := engine.NewTable(engine.Options{Shards: 4, MaxMemoryBytes: 4 << 20}), engine.Stamp{NowNs: 1e18}
	terms := engine.Policy{Record: true, Limits: []engine.PolicyLimit{{Limit: heldLimits["fixed"]}}}
	decideAt(table, at, setPolicy("p", terms))
	held := 0
	for i := range 100_000 {
		d := decideAt(table, at, reserve(fmt.Sprint("h", i), 1, 10e9, "p", fmt.Sprint("k", i)))
		if held += int(d.Allowed); d.Status == engine.OutOfMemory {
			break
		}
	}
	require.Less(t, held, 100_000)
	at.NowNs += 11e9
	table.Collect(at, 1<<20)
	for i := range 1000 {
		decideAt(table, at, check(1, "p", fmt.Sprint("other", i)))
	}
	told := 0
	for ops := table.Ended(engine.MaxEnds); len(ops) > 0; ops = table.Ended(engine.MaxEnds) {
		table.Decide(at, ops, make([]engine.Decision, len(ops)))
		told += len(ops)
	}
	require.Equal(t, held, told)
	_, position, _ := table.Events(0, 0)
	require.EqualValues(t, held, position.Last)
}
