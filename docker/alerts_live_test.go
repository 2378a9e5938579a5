package docker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirbin"
)

// watched is a set of real nodes that a real Prometheus scrapes. One minute of the rules lasts four seconds.
type watched struct {
	t      *testing.T
	dir    string
	binary string
	prom   string // its address
	nodes  map[string]*watchedNode
}

type watchedNode struct {
	addr, web string
	args      []string
	cmd       *exec.Cmd
}

// TestAlertsLive causes the condition of each alert and checks that the alert fires, then removes the condition and
// checks that it clears. In between it checks that the dashboard shows data.
func TestAlertsLive(t *testing.T) {
	if os.Getenv("WEIRTEST_OPS") == "" {
		t.Skip("SKIPPED: alerts are tested live with WEIRTEST_OPS=1 (make test-ops)")
	}
	prometheus := tool(t, "prometheus", "prometheus")
	w := &watched{t: t, dir: t.TempDir(), nodes: map[string]*watchedNode{}}
	var err error
	w.binary, err = weirbin.Build(w.dir)
	require.NoError(t, err)
	w.plan()
	for name := range w.nodes {
		w.start(name, wrongClock[name]...)
	}
	w.startPrometheus(prometheus)
	w.awaitCluster()
	w.awaitTargets()

	w.awaitFiring("WeirClockSkew")
	w.kill("c") // before it may become leader: otherwise its time would become the cluster's
	w.start("c")
	stop := w.trouble()
	w.awaitFiring("WeirRequestsLimited", "WeirStrikesReported", "WeirLockouts", "WeirWrongPasswords", "WeirLeaderFlaps",
		"WeirMemoryNearBound", "WeirEvicts", "WeirClientsNearBound", "WeirRefusesUnsupported")
	w.awaitPanels()
	stop()
	w.kill("c")
	w.awaitFiring("WeirDown", "WeirQuorumAtRisk")
	w.kill("b")
	w.awaitFiring("WeirNoLeader", "WeirQuorumLost", "WeirStateIsOld")

	w.kill("solo")
	for _, name := range []string{"b", "c", "solo"} {
		w.start(name) // solo with empty memory
	}
	w.awaitQuiet()
}

var wrongClock = map[string][]string{"c": {"--test-wall-offset=1m"}}

// plan configures a cluster of three nodes and a single node with low bounds.
func (w *watched) plan() {
	names, raft := []string{"a", "b", "c"}, []string{freeport.Addr(w.t), freeport.Addr(w.t), freeport.Addr(w.t)}
	for i, name := range names {
		w.nodes[name] = &watchedNode{addr: freeport.Addr(w.t), web: freeport.Addr(w.t), args: []string{
			"--node-id=" + name, "--raft-addr=" + raft[i], "--join=" + strings.Join(raft, ","),
			"--data-dir=" + filepath.Join(w.dir, name),
			"--raft-heartbeat=3s", // a shorter pause of the machine changes no leader
		}}
	}
	w.nodes["solo"] = &watchedNode{addr: freeport.Addr(w.t), web: freeport.Addr(w.t), args: []string{
		"--requirepass=right", "--max-memory=16mb", "--max-clients=10", "--data-dir=",
	}}
}

func (w *watched) start(name string, more ...string) {
	n := w.nodes[name]
	n.cmd = w.run(name, w.binary,
		slices.Concat([]string{"serve", "--listen=" + n.addr, "--http=" + n.web}, n.args, more)...)
}

// run starts a program with its own log file, and ends it with the test.
func (w *watched) run(name, path string, args ...string) *exec.Cmd {
	log, err := os.OpenFile(filepath.Join(w.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(w.t, err)
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, log, log
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_, _ = cmd.Process.Kill(), cmd.Wait()
		if said, err := os.ReadFile(log.Name()); err == nil && w.t.Failed() {
			w.t.Logf("%s said:\n%s", name, said[max(len(said)-2000, 0):])
		}
	})
	return cmd
}

func (w *watched) kill(name string) {
	require.NoError(w.t, w.nodes[name].cmd.Process.Signal(syscall.SIGKILL))
	_ = w.nodes[name].cmd.Wait()
}

// shorter replaces a minute by four seconds, and shorter times by one second.
func shorter(rules string) string {
	rules = regexp.MustCompile(`(\[|for: )\d+s`).ReplaceAllString(rules, "${1}1s")
	return regexp.MustCompile(`(\[|for: )(\d+)m`).ReplaceAllStringFunc(rules, func(s string) string {
		n := strings.TrimLeft(s, "[for: ")
		minutes, _ := strconv.Atoi(strings.TrimSuffix(n, "m"))
		return strings.TrimSuffix(s, n) + strconv.Itoa(4*minutes) + "s"
	})
}

func (w *watched) startPrometheus(path string) {
	rules, err := os.ReadFile("prometheus/alerts.yaml")
	require.NoError(w.t, err)
	config := "global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files: " +
		"[rules.yaml]\nscrape_configs:\n" +
		fmt.Sprintf("  - {job_name: weir, static_configs: [{targets: [%q, %q, %q]}]}\n", w.nodes["a"].web,
			w.nodes["b"].web, w.nodes["c"].web) +
		fmt.Sprintf("  - {job_name: weir-solo, static_configs: [{targets: [%q]}]}\n", w.nodes["solo"].web)
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, "rules.yaml"), []byte(shorter(string(rules))), 0o600))
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, "prometheus.yaml"), []byte(config), 0o600))
	w.prom = freeport.Addr(w.t)
	w.run("prometheus", path, "--config.file=prometheus.yaml", "--storage.tsdb.path=tsdb",
		"--web.listen-address="+w.prom)
}

func (w *watched) awaitCluster() {
	require.Eventually(w.t, func() bool {
		_, err := w.do("a", "RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "1")
		return err == nil
	}, patience, 100*time.Millisecond)
}

// awaitTargets waits until Prometheus has scraped every node, because it sees an increase only after a first sample.
func (w *watched) awaitTargets() {
	w.await("all nodes are scraped", func() bool {
		var reply struct {
			Data struct{ ActiveTargets []struct{ Health string } }
		}
		up := 0
		w.ask("targets", &reply)
		for _, target := range reply.Data.ActiveTargets {
			if target.Health == "up" {
				up++
			}
		}
		return up == len(w.nodes)
	})
}

func (w *watched) do(node, command string, args ...any) (any, error) {
	c, err := redis.Dial("tcp", w.nodes[node].addr, redis.DialConnectTimeout(time.Second),
		redis.DialReadTimeout(5*time.Second))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(command, args...)
}

// trouble causes the conditions of alerts until its result is called.
func (w *watched) trouble() (stop func()) {
	stopped, running := make(chan struct{}), sync.WaitGroup{}
	again := func(what func(i int)) {
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stopped:
					return
				case <-time.After(20 * time.Millisecond):
					what(i)
				}
			}
		})
	}
	// Errors are expected: leadership moves, and clients are rejected.
	again(func(int) { _, _ = w.do("a", "RL.CHECK", "login", "42") })
	_, _ = w.do("a", "RL.POLICY", "SET", "failed-logins", "LIMIT", "STRIKE", "15m", "1", "15m")
	again(func(i int) { _, _ = w.do("a", "RL.CHECK", "failed-logins", fmt.Sprint("auth:", i)) })
	again(func(int) { _, _ = w.do("solo", "AUTH", "wrong") })
	again(func(int) { _, _ = w.do("a", "LPUSH", "queue", "job") })
	again(func(i int) {
		if i%50 == 0 {
			_, _ = w.do("b", "WEIR.CLUSTER", "TRANSFER", []string{"a", "b"}[i/50%2])
		}
	})
	hoard := w.hoard(9)
	again(func(i int) { flood(hoard[0], 1000*i) })
	return func() {
		close(stopped)
		running.Wait()
		for _, c := range hoard {
			_ = c.Close()
		}
	}
}

// hoard opens many connections to the single node.
func (w *watched) hoard(n int) (held []redis.Conn) {
	for range n {
		c, err := redis.Dial("tcp", w.nodes["solo"].addr, redis.DialPassword("right"))
		require.NoError(w.t, err)
		held = append(held, c)
	}
	return held
}

// flood invents a thousand keys.
func flood(c redis.Conn, from int) {
	for i := range 1000 {
		_ = c.Send("RL.TOKENBUCKET", fmt.Sprint("key:", from+i), "1/h", "10")
	}
	_, _ = c.Do("")
}

// ask reads an answer of Prometheus' API. If it cannot read the answer, it leaves the value unchanged.
func (w *watched) ask(what string, into any) {
	reply, err := http.Get("http://" + w.prom + "/api/v1/" + what)
	if err != nil {
		return // it is still starting
	}
	defer reply.Body.Close()
	require.NoError(w.t, json.NewDecoder(reply.Body).Decode(into))
}

func (w *watched) firing() (names []string) {
	var reply struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	w.ask("alerts", &reply)
	for _, a := range reply.Data.Alerts {
		if name := a.Labels["alertname"]; a.State == "firing" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (w *watched) await(what string, is func() bool) {
	w.t.Helper()
	if !assert.Eventually(w.t, is, 2*patience, 200*time.Millisecond, what) {
		firing := w.firing()
		w.t.Cleanup(func() { w.t.Logf("waited in vain: %s; firing: %v", what, firing) })
		w.t.FailNow()
	}
}

func (w *watched) awaitFiring(names ...string) {
	w.t.Helper()
	seen := map[string]bool{}
	w.await(fmt.Sprint("firing: ", names), func() bool {
		for _, name := range w.firing() {
			seen[name] = true
		}
		for _, name := range names {
			if !seen[name] {
				return false
			}
		}
		return true
	})
}

// mayFire are the alerts that may still fire after the trouble. The cluster's clock stood still without a quorum, and
// a new leader may take hours to catch up. The free disk space is a property of this machine.
var mayFire = []string{"WeirClockBehind", "WeirDiskFillsUp", "WeirDiskSlow"}

// awaitQuiet waits until no other alert fires.
func (w *watched) awaitQuiet() {
	w.t.Helper()
	w.await("nothing fires", func() bool {
		return !slices.ContainsFunc(w.firing(), func(name string) bool { return !slices.Contains(mayFire, name) })
	})
}
