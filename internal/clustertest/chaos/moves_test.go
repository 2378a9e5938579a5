package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/logtest"
)

const (
	tierNodes, tierGroups, tierReplicas = 5, 4, 3
	tierClients, tierKeys               = 4, 32
	tierQuota                           = 1_000_000_000 // units of a key, which never return
	// killWithin is how soon after the line of a step the victim is killed: within this step, or within the next one.
	killWithin = 300 * time.Millisecond
	// kills come while a cluster is founded, each within foundingTakes after the one before.
	kills         = 3
	foundingTakes = 2 * time.Second
)

// The steps of a move, as weir cluster move prints them.
const (
	stepOpen    = "a replica opens"
	stepCatchUp = "catches up"
	stepLead    = "the leadership moves"
	stepRemove  = "is removed"
)

var moveSteps = []string{stepOpen, stepCatchUp, stepLead, stepRemove}

// The victims of a kill during a move.
var moveVictims = []string{"source", "target", "leader", "operator"}

// tier is a cluster whose groups are on a part of the nodes, under constant load.
type tier struct {
	*testing.T
	cluster *Cluster
	nodes   []*Node // of the cluster now; clients work on these
	rng     *rand.Rand
	tally   Tally
	times   times
	books   [tierKeys]struct{ allowed, unknown atomic.Int64 }
	refused atomic.Pointer[string] // a reply that no request should get
	hits    map[string]int         // kills, by victim and step
	stop    func()                 // ends the clients
}

func startTier(t *testing.T) *tier {
	t.Helper()
	skipShort(t)
	m := prepareTier(t, config(t, tierNodes, *heartbeat), tierGroups)
	require.NoError(t, m.cluster.StartAll())
	m.nodes = m.cluster.Nodes
	return m
}

// prepareTier makes a tier whose nodes do not run yet.
func prepareTier(t *testing.T, cfg ClusterConfig, groups int) *tier {
	t.Helper()
	cfg.Args = append(cfg.Args, "--groups", strconv.Itoa(groups), "--replicas", strconv.Itoa(tierReplicas))
	cfg.OnExit = func(n *Node, err error) { t.Errorf("%s %v: %v\n%s", n.ID, ErrExited, err, n.LogTail()) }
	s := theSeed()
	t.Logf("-chaos.seed=%d", s)
	m := &tier{T: t, rng: rand.New(rand.NewPCG(s, 0)), hits: map[string]int{}}
	var err error
	m.cluster, err = NewCluster(cfg)
	if m.cluster != nil {
		t.Cleanup(m.cluster.Close)
	}
	require.NoError(t, err)
	return m
}

// load lets clients take units at the nodes of the cluster until stop is called. Those of an earlier load end.
func (m *tier) load() {
	if m.stop != nil {
		m.stop()
	}
	ctx, cancel := context.WithCancel(m.Context())
	w := &Workload{start: time.Now(), seed: m.rng.Uint64()}
	for _, n := range m.nodes {
		w.addrs = append(w.addrs, n.Addr)
	}
	var all sync.WaitGroup
	for id := range tierClients {
		c := w.client(id, patientTimeout)
		c.tally = &m.tally
		all.Go(func() {
			defer c.Close()
			for c.pause(ctx, probePause) {
				m.take(c, c.rng.IntN(tierKeys))
			}
		})
	}
	m.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	m.Cleanup(m.stop)
}

func unitsKey(key int) string { return "units:" + strconv.Itoa(key) }

// take takes a unit of a key, and enters the outcome into the books.
func (m *tier) take(c *Client, key int) {
	a := c.Call("RL.FIXED", unitsKey(key), "FOREVER", strconv.Itoa(tierQuota))
	switch n := a.ints(); {
	case a.Outcome == Unknown:
		m.books[key].unknown.Add(1)
	case len(n) > 1 && n[0] == 1:
		m.books[key].allowed.Add(1)
		m.times.add(time.Duration(a.ReturnNs - a.CallNs))
	case a.Outcome != NotApplied:
		said := fmt.Sprint(a.Outcome, ": ", a.Reply)
		m.refused.Store(&said)
	}
}

// judge ends the clients, and checks at every node that each unit counts once.
func (m *tier) judge() {
	m.Helper()
	m.stop()
	if said := m.refused.Load(); said != nil {
		require.Fail(m, "a unit was refused", *said)
	}
	for _, n := range m.nodes {
		require.NoError(m, n.AwaitReady(m.Context()))
	}
	var allowed, counted, unknown int64
	for key := range tierKeys {
		b := &m.books[key]
		for _, n := range m.nodes {
			got := m.counted(n, key)
			require.GreaterOrEqual(m, got, b.allowed.Load(), "%s lost units of %s", n.ID, unitsKey(key))
			require.LessOrEqual(m, got, b.allowed.Load()+b.unknown.Load(), "%s counts %s twice", n.ID, unitsKey(key))
			if n == m.nodes[0] {
				counted += got
			}
		}
		allowed, unknown = allowed+b.allowed.Load(), unknown+b.unknown.Load()
	}
	require.NotZero(m, allowed)
	m.Logf("%d units allowed, %d counted, %d with an unknown outcome; answers: %v", allowed, counted, unknown,
		m.tally.totals().Words)
}

// counted returns the units of a key that a node reads.
func (m *tier) counted(n *Node, key int) (units int64) {
	var last any
	err := poll(m.Context(), settledWithin, func() bool {
		reply, err := n.Ask(patientTimeout, "RL.FIXED", unitsKey(key), "FOREVER", strconv.Itoa(tierQuota), "COST", "0")
		fields, ok := reply.([]any)
		if last = fmt.Sprint(reply, err); err != nil || !ok || len(fields) < 2 {
			return false
		}
		left, ok := fields[1].(int64)
		units = tierQuota - left
		return ok
	})
	require.NoError(m, err, "%s: %v", n.ID, last)
	return units
}

// whole waits until every node sees R voters and a leader of each group, and the same ones. It returns what they see.
func (m *tier) whole(when string) (s tierStatus) {
	m.Helper()
	last := ""
	err := poll(m.Context(), settledWithin, func() bool {
		seen := map[string]bool{}
		for _, n := range m.nodes {
			var err error
			if s, err = n.status(); err != nil {
				last = fmt.Sprint(n.ID, ": ", err)
				return false
			}
			var all []string
			for group := range s.Groups {
				ids, _, whole := s.members(group, tierReplicas)
				if all = append(all, fmt.Sprint(ids)); !whole {
					last = fmt.Sprintf("%s sees group %d as %+v", n.ID, group, s.Groups[group])
					return false
				}
			}
			seen[fmt.Sprint(all)] = true
		}
		last = fmt.Sprint(seen)
		return len(seen) == 1
	})
	require.NoError(m, err, "%s: %s", when, last)
	return s
}

func (m *tier) node(id string) *Node {
	n := m.cluster.with(id)
	require.NotNil(m, n, id)
	return n
}

func (m *tier) anyone() *Node { return m.nodes[m.rng.IntN(len(m.nodes))] }

// operate runs weir cluster move at a node. It calls heard with each line that the command prints, and with a function
// that kills the command.
func (m *tier) operate(at *Node, v move, heard func(line string, kill func())) error {
	cmd := exec.CommandContext(m.Context(), at.binary, append(v.args(), "--addr", at.Addr)...)
	var said logtest.Buffer // the errors, which another goroutine copies, and the lines
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	require.NoError(m, err)
	require.NoError(m, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if heard != nil {
			heard(lines.Text(), func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	return nil
}

// finish runs the same command until it says that the move is done.
func (m *tier) finish(v move) {
	m.Helper()
	var last error
	err := poll(m.Context(), settledWithin, func() bool {
		last = m.operate(m.anyone(), v, nil)
		return last == nil
	})
	require.NoError(m, err, "%+v: %v", v, last)
}

// begin opens a replica on the target, kills the command and the target, and starts the target again.
func (m *tier) begin(v move) {
	m.Helper()
	begun := false
	require.NoError(m, poll(m.Context(), settledWithin, func() bool {
		_ = m.operate(m.node(v.from), v, func(line string, kill func()) {
			if !begun && strings.Contains(line, stepOpen) {
				begun = true
				kill()
				m.node(v.to).Process().Kill()
			}
		})
		return begun
	}))
	require.NoError(m, m.node(v.to).Start())
}

// plan returns a move of a group whose leader gives its replica away, or, if none of them shall, another member.
func (m *tier) plan(group int, leads bool) (v move, leader string) {
	s := m.whole("before a move")
	ids, leader, _ := s.members(group, tierReplicas)
	v = move{group: group, from: leader}
	for !leads && v.from == leader {
		v.from = ids[m.rng.IntN(len(ids))]
	}
	for v.to == "" || slices.Contains(ids, v.to) {
		v.to = s.Nodes[m.rng.IntN(len(s.Nodes))].ID
	}
	return v, leader
}

// breakMove moves a replica, and kills the victim after a step. A node that is not the target may stay dead until the
// move is done. Then the same command ends the move.
func (m *tier) breakMove(number int) {
	step := moveSteps[number%len(moveSteps)]
	victim := moveVictims[(number+number/len(moveSteps))%len(moveVictims)]
	v, leader := m.plan(m.rng.IntN(tierGroups), step == stepLead || m.rng.IntN(2) == 0)
	target := m.node(v.to)
	dead := map[string]*Node{"source": m.node(v.from), "target": target, "leader": m.node(leader)}[victim]
	after, late := time.Duration(m.rng.Int64N(int64(killWithin))), victim != "target" && m.rng.IntN(2) == 0
	dies := dead == nil || m.rng.IntN(2) == 0
	hit, paused := false, false
	at := m.anyone()
	for at == target { // which may pause
		at = m.anyone()
	}
	err := m.operate(at, v, func(line string, kill func()) {
		if paused {
			target.Process().Resume()
			paused = false
		}
		if step == stepCatchUp && victim != "target" && strings.Contains(line, stepOpen) {
			target.Process().Pause() // so that the command sees it behind
			paused = true
		}
		if hit || !strings.Contains(line, step) {
			return
		}
		hit = true
		_ = sleep(m.Context(), after)
		if dies { // the command may also go on during the fault of a node
			kill()
		}
		if dead == nil {
			return
		}
		dead.Process().Kill()
		if !late {
			require.NoError(m, dead.Start())
		}
	})
	if paused {
		target.Process().Resume()
	}
	if hit {
		m.hits[victim+" / "+step]++
	}
	m.Logf("%2d: %+v, %s killed %v after %q, hit: %t, late: %t: %v", number, v, victim, after.Round(time.Millisecond),
		step, hit, late, err)
	m.finish(v)
	require.NoError(m, m.cluster.StartAll())
	s := m.whole("after a move")
	ids, _, _ := s.members(v.group, tierReplicas)
	require.Contains(m, ids, v.to, "%+v", v)
	require.NotContains(m, ids, v.from, "%+v", v)
}

// TestMovesUnderKills moves replicas while clients take units, and kills the source, the target, the leader or the
// command of the operator after every step. The same command then ends the move, each group has its replicas, and each
// unit counts once.
func TestMovesUnderKills(t *testing.T) {
	m := startTier(t)
	m.whole("after the founding")
	m.load()
	for number := range *moved {
		m.breakMove(number)
	}
	m.judge()
	m.cluster.KillAll()
	require.NoError(t, m.cluster.StartAll())
	m.whole("after all nodes were killed")
	m.judge()
	t.Logf("%d moves, kills: %v", *moved, m.hits)
	if *moved >= len(moveSteps)*len(moveVictims) {
		for _, step := range moveSteps {
			n := 0
			for _, victim := range moveVictims {
				n += m.hits[victim+" / "+step]
			}
			require.NotZero(t, n, "no kill came after the step %q", step)
		}
	}
}

// TestFoundingUnderKills kills nodes with SIGKILL while they found a cluster whose groups are on a part of them. Each
// group is founded once: the identities on all disks name one cluster for each group.
func TestFoundingUnderKills(t *testing.T) {
	m := startTier(t)
	for number := range *founded {
		if number > 0 {
			m.cluster.Close()
			rng := m.rng
			m = startTier(t)
			m.rng = rng
		}
		for range kills {
			after := time.Duration(m.rng.Int64N(int64(foundingTakes)))
			require.NoError(t, sleep(t.Context(), after))
			if m.rng.IntN(2) == 0 {
				m.cluster.KillAll()
			} else {
				m.anyone().Process().Kill()
			}
			m.Logf("killed after %v: groups on disks: %v", after.Round(time.Millisecond), m.clustersOnDisk())
			require.NoError(t, m.cluster.StartAll())
		}
		m.whole("after the founding")
		for group, ids := range m.clustersOnDisk() {
			require.Len(t, ids, 1, "group %d", group)
		}
	}
}

// clustersOnDisk returns the ids of the clusters that the nodes have recorded for each group.
func (m *tier) clustersOnDisk() [tierGroups]map[string]int {
	all := [tierGroups]map[string]int{}
	for group := range all {
		all[group] = map[string]int{}
		for _, n := range m.cluster.Nodes {
			dir := n.Dir
			if group > 0 {
				dir = filepath.Join(n.Dir, "groups", fmt.Sprintf("%04d", group))
			}
			b, err := os.ReadFile(filepath.Join(dir, "NODE"))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			require.NoError(m, err)
			var id struct{ ClusterID string }
			require.NoError(m, json.Unmarshal(b, &id))
			if id.ClusterID != "" {
				all[group][id.ClusterID]++
			}
		}
	}
	return all
}

// loseDisk kills a node and removes its data directory.
func (m *tier) loseDisk(n *Node) {
	n.Process().Kill()
	require.NoError(m, os.RemoveAll(n.Dir))
	require.NoError(m, os.MkdirAll(n.Dir, 0o755))
}

// TestMovedReplicasLast checks what an operator does with moved replicas: a move to a node that is down, the undo of a
// move, a move back, restarts of the target, of all nodes at once and one after the other, and the loss of a disk.
func TestMovedReplicasLast(t *testing.T) {
	m := startTier(t)
	m.whole("after the founding")
	m.load()

	v, _ := m.plan(1, false)
	target := m.node(v.to)
	target.Process().Kill()
	require.NoError(t, poll(t.Context(), settledWithin, func() bool {
		s, err := m.node(v.from).status()
		return err == nil && slices.Contains(s.Nodes, tierNode{v.to, false})
	}))
	err := m.operate(m.node(v.from), v, nil)
	require.ErrorContains(t, err, strconv.Quote(v.to)+" is not up")
	require.NoError(t, target.Start())
	require.NoError(t, target.AwaitReady(t.Context()))

	// The target is killed as soon as its replica is open, and then the move is undone.
	m.begin(v)
	back := move{v.group, v.to, v.from}
	m.finish(back)
	m.whole("after an undo")

	// The target restarts while it catches up, and joins by itself.
	m.begin(v)
	m.finish(v)
	m.whole("after a restart of the target")
	m.finish(back)
	m.whole("after a move back")
	m.finish(v)
	m.whole("after the third move of a replica")
	for group := range tierGroups {
		v, _ := m.plan(group, group%2 == 0)
		m.finish(v)
	}
	m.whole("after moves of all groups")

	m.cluster.KillAll()
	require.NoError(t, m.cluster.StartAll())
	before := m.whole("after all nodes were killed")
	require.NoError(t, m.cluster.Roll(t.Context()))
	require.Equal(t, membersOf(before), membersOf(m.whole("after a rolling restart")))

	lost := m.anyone()
	m.rejoin(lost)
	// A plan may be made while a node does not know of the removal yet. Then another one follows.
	require.NoError(t, poll(t.Context(), settledWithin, func() bool {
		_, err = m.cluster.Nodes[0].carryOutPlan(t.Context())
		return err == nil && !slices.ContainsFunc(m.nodes, func(n *Node) bool {
			s, err := n.status()
			return err != nil || !s.whole(tierGroups, tierReplicas)
		})
	}), "the last plan: %v", &err)
	m.whole("after the loss of a disk")
	m.judge()
}

func membersOf(s tierStatus) (all [][]string) {
	for group := range s.Groups {
		ids, _, _ := s.members(group, tierReplicas)
		all = append(all, ids)
	}
	return all
}

// rejoin lets a node lose its disk, be removed and join again, as an operator does.
func (m *tier) rejoin(n *Node) {
	n.Excuse(true)
	defer n.Excuse(false)
	other := m.cluster.Nodes[0]
	if other == n {
		other = m.cluster.Nodes[1]
	}
	m.loseDisk(n)
	var last error
	require.NoError(m, poll(m.Context(), settledWithin, func() bool {
		_, last = other.weir(m.Context(), "cluster", "remove", n.ID)
		return last == nil
	}), "%v", &last)
	require.NoError(m, poll(m.Context(), settledWithin, func() bool { // the first start ends with a new id
		require.NoError(m, n.Start())
		s, err := other.status()
		return err == nil && slices.ContainsFunc(s.Nodes, func(o tierNode) bool {
			return strings.HasPrefix(o.ID, n.ID+"~") && o.Up
		})
	}))
}
