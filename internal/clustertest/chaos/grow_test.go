package chaos

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// times are how long decisions took, by the second of their answers. It is safe for use by several goroutines.
type times struct {
	mu    sync.Mutex
	begin time.Time
	by    map[int][]time.Duration
}

func (t *times) add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by != nil {
		second := int(time.Since(t.begin) / time.Second)
		t.by[second] = append(t.by[second], took)
	}
}

// take returns the times since the last call, and begins anew.
func (t *times) take() map[int][]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := t.by
	t.begin, t.by = time.Now(), map[int][]time.Duration{}
	return by
}

// quantile returns the time that a share of all decisions does not exceed. It sorts all.
func quantile(all []time.Duration, share float64) time.Duration {
	slices.Sort(all)
	return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
}

// measure runs a phase, and logs how long decisions took meanwhile. It returns the median of the seconds' p99, which a
// busy moment of the machine changes little.
func (m *tier) measure(phase string, run func()) time.Duration {
	m.times.take()
	begin := time.Now()
	run()
	var all, p99s []time.Duration
	for _, second := range m.times.take() {
		all, p99s = append(all, second...), append(p99s, quantile(second, 0.99))
	}
	require.NotEmpty(m, all, phase)
	median := quantile(p99s, 0.5)
	m.Logf("%-22s %5.1f s, %6d decisions, p50 %v, p99 %v, median of the seconds' p99 %v, longest %v", phase,
		time.Since(begin).Seconds(), len(all), quantile(all, 0.5), quantile(all, 0.99), median, quantile(all, 1))
	return median
}

// quiet measures decisions while nothing moves.
func (m *tier) quiet(phase string) time.Duration {
	return m.measure(phase, func() { require.NoError(m, sleep(m.Context(), *calm)) })
}

// start starts new nodes, and waits until the cluster sees them.
func (m *tier) start(fresh []*Node) {
	m.Helper()
	for _, n := range fresh {
		require.NoError(m, n.Start())
	}
	m.nodes = append(slices.Clone(m.nodes), fresh...)
	m.awaitUp()
}

// awaitUp waits until every node sees the nodes of the cluster, and no other.
func (m *tier) awaitUp() {
	m.Helper()
	require.NoError(m, poll(m.Context(), settledWithin, func() bool {
		return !slices.ContainsFunc(m.nodes, func(n *Node) bool {
			s, err := n.status()
			return err != nil || !s.allUp(len(m.nodes))
		})
	}))
}

// even carries out plans at a node until nothing is to move, and returns the number of moves.
func (m *tier) even(at *Node) (moves int) {
	m.Helper()
	var last error
	require.NoError(m, poll(m.Context(), settledWithin, func() bool {
		said, err := at.weir(m.Context(), "cluster", "plan")
		if last = err; err != nil || strings.Contains(said, "nothing to move") {
			return err == nil
		}
		said, last = at.carryOutPlan(m.Context()) // a plan that was made too early is refused, and made again
		moves += strings.Count(said, " is done\n")
		return false
	}), "%v", &last)
	return moves
}

// takeOut drains a node, stops it and removes it, and returns the number of moves.
func (m *tier) takeOut(n *Node) (moves int) {
	m.Helper()
	m.nodes = slices.DeleteFunc(slices.Clone(m.nodes), func(o *Node) bool { return o == n })
	at := m.anyone()
	var last error
	require.NoError(m, poll(m.Context(), settledWithin, func() bool {
		var said string
		said, last = at.weir(m.Context(), "cluster", "drain", n.ID)
		moves += strings.Count(said, " is done\n")
		return last == nil
	}), "%s: %v", n.ID, &last)
	require.NoError(m, n.Process().Stop())
	require.NoError(m, poll(m.Context(), settledWithin, func() bool {
		_, last = at.weir(m.Context(), "cluster", "remove", n.ID)
		return last == nil
	}), "%s: %v", n.ID, &last)
	m.awaitUp()
	return moves
}

// TestGrowAndShrink grows three nodes under load to six, and then takes the first three out, as docs/scaling.md
// describes. So every replica is replaced, and each unit counts once. It logs how long decisions take meanwhile.
func TestGrowAndShrink(t *testing.T) {
	skipShort(t)
	const founders = 3
	cfg := config(t, 2*founders, 0)
	cfg.Founders = founders
	m := prepareTier(t, cfg, *grown)
	old, fresh := m.cluster.Nodes[:founders], m.cluster.Nodes[founders:]
	m.start(old)
	m.whole("after the founding")
	m.load()
	three := m.quiet("three nodes")
	moves := 0
	growing := m.measure("they grow to six", func() {
		m.start(fresh)
		moves = m.even(old[0])
	})
	t.Logf("%d moves", moves)
	require.NotZero(t, moves)
	m.whole("after the plans")
	m.load()
	six := m.quiet("six nodes")
	moves = 0
	shrinking := m.measure("the first three leave", func() {
		for _, n := range old {
			moves += m.takeOut(n)
		}
	})
	t.Logf("%d moves", moves)
	s := m.whole("after the drains")
	for group := range s.Groups {
		ids, _, _ := s.members(group, tierReplicas)
		require.Equal(t, []string{"n4", "n5", "n6"}, ids, "group %d", group)
	}
	m.load()
	others := m.quiet("the other three")
	t.Logf("median p99 of moves beside quiet: growing %.2f, shrinking %.2f",
		2*float64(growing)/float64(three+six), 2*float64(shrinking)/float64(six+others))
	m.judge()
	m.cluster.KillAll()
	for _, n := range fresh {
		require.NoError(t, n.Start())
	}
	m.whole("after all nodes were killed")
	m.judge()
}
