package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// machines are the nodes of one server or cluster as real processes.
type machines struct {
	t     *testing.T
	args  [][]string
	nodes []*process
}

// startMachines starts this many nodes with more arguments. 0 is a server that runs alone.
func startMachines(t *testing.T, nodes int, more ...string) *machines {
	m := &machines{t: t}
	dir := t.TempDir()
	if nodes == 0 {
		m.args = [][]string{{"--data-dir=" + filepath.Join(dir, "alone")}}
	}
	join := freeport.Addrs(t, nodes)
	for i, addr := range join {
		m.args = append(m.args, append([]string{
			"--data-dir=" + filepath.Join(dir, fmt.Sprint(i)), "--node-id=" + fmt.Sprint("n", i), "--raft-addr=" + addr,
			"--join=" + strings.Join(join, ","),
		}, more...))
	}
	m.nodes = make([]*process, len(m.args))
	for i := range m.args {
		m.start(i)
	}
	m.serves()
	return m
}

func (m *machines) start(i int, more ...string) {
	m.nodes[i] = start(m.t, append(more, m.args[i]...)...)
}

// kill ends a process like a loss of power, as far as possible for a process.
func (m *machines) kill(i int) {
	m.nodes[i].signal(9)
	m.nodes[i].wait()
}

// serves waits until a node leads, and returns its index.
func (m *machines) serves() (leader int) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		for i, p := range m.nodes {
			c, err := redis.Dial("tcp", p.addr)
			if err != nil {
				continue
			}
			_, err = redis.Int64s(c.Do("RL.TOKENBUCKET", "probe", "1/d", "1000000"))
			role, _ := redis.Values(c.Do("ROLE"))
			c.Close()
			if err == nil && len(role) > 0 && fmt.Sprintf("%s", role[0]) == "master" {
				leader = i
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond)
	return leader
}

// behind returns how far the windows are behind this machine's wall clock.
func (m *machines) behind(leader int) time.Duration {
	info, err := redis.String(m.nodes[leader].do("INFO"), nil)
	require.NoError(m.t, err)
	_, rest, _ := strings.Cut(info, "clock_behind_ms:")
	ms, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 10, 64)
	require.NoError(m.t, err)
	return time.Duration(ms) * time.Millisecond
}

// fromEnv returns a duration or a count for a longer run.
func fromEnv[T any](t *testing.T, name string, usual T, parse func(string) (T, error)) T {
	if os.Getenv(name) == "" {
		return usual
	}
	v, err := parse(os.Getenv(name))
	require.NoError(t, err)
	return v
}

// refillRate is in tokens a second.
const refillRate = 100

// TestPowerLossOfAll kills every process. Afterwards the refill of the downtime is present, and a day ends at midnight.
// Advanced wall clocks simulate the downtime; WEIRTEST_DOWN waits in real time.
func TestPowerLossOfAll(t *testing.T) {
	down := fromEnv(t, "WEIRTEST_DOWN", 0, time.ParseDuration)
	pretend := 45 * time.Second
	if down > 0 {
		pretend = 0
	}
	for name, nodes := range map[string]int{"alone": 0, "cluster of one": 1, "three nodes": 3} {
		t.Run(name, func(t *testing.T) {
			m := startMachines(t, nodes)
			m.nodes[m.serves()].do("RL.TOKENBUCKET", "bucket", fmt.Sprint(refillRate, "/s"), "10000000",
				"COST", "10000000")
			drained := time.Now()
			time.Sleep(4 * time.Second) // alone it saves once a second, and a leader records the clocks as often
			for i := range m.nodes {
				m.kill(i)
			}
			time.Sleep(down)
			for i := range m.nodes {
				m.start(i, "--test-wall-offset="+pretend.String())
			}
			leader := m.serves()
			remaining := m.nodes[leader].five("RL.TOKENBUCKET", "bucket", fmt.Sprint(refillRate, "/s"), "10000000",
				"COST", "0")[1]
			passed := time.Since(drained) + pretend
			lost := passed - time.Duration(remaining)*time.Second/refillRate
			resets := m.nodes[leader].five("RL.FIXED", "day", "DAY", "1000")[3]
			end := time.Now().UTC().Add(pretend + time.Duration(resets)*time.Millisecond)
			late := end.Sub(end.Round(24 * time.Hour))
			t.Logf("%s, down %v: refill lost %v, day resets %v late, clock behind %v", name, down+pretend, lost, late,
				m.behind(leader)+pretend)
			require.GreaterOrEqual(t, lost, -50*time.Millisecond, "limiter time must not run ahead of real time")
			require.Less(t, lost, 3*time.Second)
			require.Less(t, late.Abs(), 3*time.Second)
		})
	}
}

// TestFailoversOfProcesses kills one leader after another and checks that limiter time neither stops nor jumps.
// WEIRTEST_FAILOVERS sets the number; 100 take a few minutes.
func TestFailoversOfProcesses(t *testing.T) {
	failovers := fromEnv(t, "WEIRTEST_FAILOVERS", 3, strconv.Atoi)
	m := startMachines(t, 3)
	before := m.behind(m.serves())
	var silences time.Duration
	for range failovers {
		leader := m.serves()
		m.kill(leader)
		began := time.Now()
		m.nodes[leader] = m.nodes[(leader+1)%3]
		m.serves()
		silences += time.Since(began)
		m.start(leader)
	}
	after := m.behind(m.serves())
	t.Logf("%d failovers, %v of silence in all: the clock went from %v to %v behind", failovers,
		silences, before, after)
	require.Less(t, after-before, 2*time.Second)
	require.Greater(t, after-before, -2*time.Second, "limiter time must not run ahead of real time")
}
