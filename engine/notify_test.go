package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// thresholdModel is the naive form of NOTIFY: for each key the units of the window that runs, and which shares were
// told in it.
type thresholdModel struct {
	max      int64
	windowNs int64
	shares   engine.Thresholds
	keys     map[string]*toldWindow
	events   []string
}

type toldWindow struct {
	endNs, used int64
	told        int
}

func (m *thresholdModel) window(key string, nowNs int64) *toldWindow {
	w := m.keys[key]
	if w == nil || w.endNs <= nowNs {
		w = &toldWindow{endNs: nowNs - nowNs%m.windowNs + m.windowNs}
		m.keys[key] = w
	}
	return w
}

// take counts units, which fit if not forced, and tells the shares that are reached for the first time.
func (m *thresholdModel) take(key, id string, units, nowNs int64) {
	w := m.window(key, nowNs)
	if w.used += units; units == 0 {
		return
	}
	for i := range len(m.shares) {
		share := int(m.shares[i])
		if w.used*100 >= m.max*int64(share) && share > w.told {
			w.told = share
			m.events = append(m.events, fmt.Sprintf("%s %s %d%% +%d %d/%d", key, id, share, units, w.used, m.max))
		}
	}
}

// giveBack gives units back. A window without units of which nothing was told is the same as none.
func (m *thresholdModel) giveBack(key string, w *toldWindow, units int64) {
	if w.used -= min(units, w.used); w.used == 0 && w.told == 0 {
		delete(m.keys, key)
	}
}

// resize gives the window another length: the count stays, and its end is that of a window that runs at the change.
func (m *thresholdModel) resize(windowNs, most, nowNs int64) {
	for key, w := range m.keys {
		if w.endNs <= nowNs || w.used == 0 && w.told == 0 {
			delete(m.keys, key)
		} else if windowNs != m.windowNs {
			w.endNs = nowNs - nowNs%windowNs + windowNs
		}
		if most > m.max { // the units of the last event are a smaller share
			w.told = int(int64(w.told) * m.max / most)
			m.giveBack(key, w, 0)
		}
	}
	m.windowNs, m.max = windowNs, most
}

// eventTexts formats events as the model does, and checks that cursors follow each other.
func eventTexts(t *testing.T, after uint64, list []engine.Event) (texts []string) {
	for i := range list {
		e := &list[i]
		require.Equal(t, after+uint64(i)+1, e.Cursor)
		texts = append(texts, fmt.Sprintf("%s %s %d%% +%d %d/%d", e.Key, e.ID, e.Share, e.Amount, e.Used, e.Limit))
	}
	return texts
}

const notifyNs = int64(1e9)

// notifyRun carries out random operations on tables with other shards and batches, and on the model.
type notifyRun struct {
	t      *testing.T
	rnd    *rand.Rand
	tables []*engine.Table
	m      thresholdModel
	nowNs  int64
	holds  []notifyHold
	next   int
	read   uint64
}

type notifyHold struct {
	id, key string
	units   int64
	from    *toldWindow
}

func (r *notifyRun) do(ops ...engine.Op) engine.Decision {
	var first []engine.Decision
	for i, table := range r.tables {
		out := make([]engine.Decision, len(ops))
		table.Decide(engine.Stamp{NowNs: r.nowNs}, ops, out)
		if i == 0 {
			first = out
		}
		require.Equal(r.t, first, out)
	}
	return first[0]
}

func (r *notifyRun) setPolicy() {
	l := engine.Limit{Algorithm: engine.FixedWindow, Max: r.m.max, WindowNs: r.m.windowNs}
	d := r.do(engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Do: engine.PolicySet,
		Terms: &engine.Policy{Limits: []engine.PolicyLimit{{Limit: l, Notify: r.m.shares}}}}})
	require.Equal(r.t, engine.OK, d.Status)
}

func (r *notifyRun) step() {
	key := fmt.Sprintf("k%d", r.rnd.IntN(40))
	w := r.m.window(key, r.nowNs)
	units := r.rnd.Int64N(r.m.max/3) + 1
	fits := w.used+units <= r.m.max
	switch r.rnd.IntN(12) {
	case 0:
		r.nowNs += r.rnd.Int64N(3 * notifyNs)
	case 1:
		r.refund(key, w, units)
	case 2, 3:
		id := fmt.Sprintf("h%d", r.next)
		r.next++
		d := r.do(engine.Op{Code: engine.OpReserve, Text: []byte("p"), Key: []byte(key), Cost: units,
			ID: []byte(id), TTLNs: engine.MaxWindowNs})
		require.Equal(r.t, fits, d.Allowed == 1, "%+v %+v %d %s", d, w, units, key)
		if fits {
			r.m.take(key, id, units, r.nowNs)
			r.holds = append(r.holds, notifyHold{id, key, units, w})
		}
	case 4, 5:
		r.settle()
	case 6:
		if r.rnd.IntN(20) == 0 {
			r.change()
		}
	default:
		d := r.do(engine.Op{Code: engine.OpCheck, Text: []byte("p"), Key: []byte(key), Cost: units})
		require.Equal(r.t, fits, d.Allowed == 1, "%+v %+v %d %s", d, w, units, key)
		if fits {
			r.m.take(key, "", units, r.nowNs)
		}
	}
}

func (r *notifyRun) refund(key string, w *toldWindow, units int64) {
	r.do(engine.Op{Code: engine.OpRefund, Key: engine.LimiterName("p", 0, []byte(key)), Cost: units})
	r.m.giveBack(key, w, units)
}

// settle commits or cancels a hold: for less, which gives units back, or for more, which are taken in any case.
func (r *notifyRun) settle() {
	if len(r.holds) == 0 {
		return
	}
	i := r.rnd.IntN(len(r.holds))
	h := r.holds[i]
	r.holds = append(r.holds[:i], r.holds[i+1:]...)
	actual := r.rnd.Int64N(2 * h.units)
	op := engine.Op{Code: engine.OpCommit, Key: []byte(h.id), Cost: actual}
	if r.rnd.IntN(3) == 0 {
		op, actual = engine.Op{Code: engine.OpCancel, Key: []byte(h.id)}, 0
	}
	require.Equal(r.t, int64(1), r.do(op).Allowed)
	if w := r.m.window(h.key, r.nowNs); w == h.from {
		r.m.giveBack(h.key, w, max(h.units-actual, 0))
	}
	r.m.take(h.key, h.id, max(actual-h.units, 0), r.nowNs)
}

// change gives the limit another size, window or other thresholds. Open holds settle before, because their units no
// longer belong to the limiter.
func (r *notifyRun) change() {
	for len(r.holds) > 0 {
		r.settle()
	}
	window := []int64{3, 4, 10}[r.rnd.IntN(3)] * notifyNs
	r.m.resize(window, 10+r.rnd.Int64N(190), r.nowNs)
	r.m.shares = []engine.Thresholds{
		"\x32\x50\x64", "\x01\x0a\x5a", "\x64", "\x14\x28\x3c\x50\x5a\x5f\x63\x64",
	}[r.rnd.IntN(4)]
	r.setPolicy()
}

// check compares the new events of every table with the model's.
func (r *notifyRun) check() {
	var last uint64
	for _, table := range r.tables {
		list, at, _ := table.Events(r.read, 1<<20)
		last = at.Last
		require.Equal(r.t, r.m.events, eventTexts(r.t, r.read, list))
	}
	r.read, r.m.events = last, nil
}

// TestThresholdsAreTheModels checks that random checks, holds, refunds, ends of windows and changes of the policy write
// the events of a naive model: none is missing, and none is written twice. Tables with other shards agree, also after
// they were stored and loaded.
func TestThresholdsAreTheModels(t *testing.T) {
	crossings := 0
	for seed := range uint64(8) {
		r := &notifyRun{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), nowNs: 1000 * notifyNs}
		r.m = thresholdModel{max: 100, windowNs: 3 * notifyNs, shares: "\x32\x50\x64", keys: map[string]*toldWindow{}}
		for _, shards := range []int{1, 8, 64} {
			r.tables = append(r.tables, engine.NewTable(engine.Options{Shards: shards, TrackChanges: true,
				WhenFull: engine.Replica, EventsBytes: 64 << 20}))
		}
		r.setPolicy()
		for i := range 60_000 {
			if r.step(); i%500 == 0 {
				crossings += len(r.m.events)
				r.check()
			}
			if i%20_000 == 19_999 {
				at := engine.Stamp{NowNs: r.nowNs}
				require.Equal(t, r.tables[0].StateHash(at), r.tables[2].StateHash(at))
				r.tables[1] = stored(t, r.tables[1], at)
				require.Equal(t, r.tables[0].StateHash(at), r.tables[1].StateHash(at))
			}
		}
		crossings += len(r.m.events)
		r.check()
	}
	t.Logf("%d crossings", crossings)
	require.Greater(t, crossings, 100_000)
}

// stored returns a table that has loaded what another one drained.
func stored(t *testing.T, from *engine.Table, at engine.Stamp) *engine.Table {
	to := engine.NewTable(engine.Options{
		Shards: 16, TrackChanges: true, WhenFull: engine.Replica, EventsBytes: 64 << 20,
	})
	from.Renew(0, 1<<40)
	require.NoError(t, from.Drain(256, func(chunk []engine.Change) error {
		for _, c := range chunk {
			if c.Value == nil {
				require.NoError(t, loadOne(to, engine.Stamp{}, c.Key, nil))
			} else if err := loadOne(to, at, c.Key, c.Value); err != nil {
				return err
			}
		}
		return nil
	}))
	return to
}
