package clienttest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

const (
	// rolloutRate and rolloutWorkers make the load during a rollout: requests a second, of so many connections.
	rolloutRate    = 200
	rolloutWorkers = 10
	// rolloutAround are the requests that are answered before and after a rollout.
	rolloutAround = 300
	// rolloutLimit is never reached.
	rolloutLimit = 1_000_000
)

var rolloutLimits = fmt.Sprintf(`
domain: web
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: %d}}
  - {key: user, value: "spent*", rate_limit: {unit: year, requests_per_unit: 3}}
  - {key: heavy, rate_limit: {unit: year, requests_per_unit: 1}}
`, rolloutLimit)

// steadyLoad is a steady load of one user through an Envoy.
type steadyLoad struct {
	mu       sync.Mutex
	answered int // OK
	failed   int // Envoy got no decision and answered 500
	last     time.Time
	longest  time.Duration // between two decisions
	least    int           // remaining units that an answer named
	others   []string      // unexpected answers

	stop    chan struct{}
	running sync.WaitGroup
}

// startLoad sends requests to a door until end.
func startLoad(f *front, d *door, user string) *steadyLoad {
	l := &steadyLoad{stop: make(chan struct{}), last: time.Now(), least: rolloutLimit}
	for i := range rolloutWorkers {
		l.running.Go(func() {
			tick := time.NewTicker(time.Duration(i+1) * time.Second / rolloutRate) // so that they take turns
			defer tick.Stop()
			first := true
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-l.stop:
					return
				case <-tick.C:
				}
				if first {
					tick.Reset(rolloutWorkers * time.Second / rolloutRate)
					first = false
				}
				req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, "http://"+d.addr, http.NoBody)
				if err != nil {
					l.note(nil, err)
					return
				}
				req.Header.Set("X-User", user)
				res, err := client.Do(req)
				if err == nil {
					_ = res.Body.Close()
				}
				l.note(res, err)
			}
		})
	}
	return l
}

// note counts an answer.
func (l *steadyLoad) note(res *http.Response, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.others = append(l.others, err.Error())
	case res.StatusCode == http.StatusOK:
		now := time.Now()
		l.longest = max(l.longest, now.Sub(l.last))
		l.last = now
		l.answered++
		if left, err := strconv.Atoi(res.Header.Get("X-Ratelimit-Remaining")); err == nil {
			l.least = min(l.least, left)
		}
	case res.StatusCode == http.StatusInternalServerError:
		l.failed++
	default:
		l.others = append(l.others, res.Status)
	}
}

// more waits until some further requests were answered.
func (l *steadyLoad) more(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.answered
	}
	goal := count() + n
	until(t, "Envoy answers no requests", func() bool { return count() >= goal })
}

// end stops the load and waits for its last answers.
func (l *steadyLoad) end() {
	close(l.stop)
	l.running.Wait()
}

// rollout is what a rollout did to a limit and its clients.
type rollout struct {
	answered, failed, forgotten int
	countedFailed               int // failed requests that were counted
	longest                     time.Duration
	spentIsDenied               bool // the client whose quota was spent before
}

// roll restarts a service under load, of a user that it has not seen.
func (f *front) roll(d *door, user string, restart func(l *steadyLoad)) rollout {
	f.Helper()
	f.decides(d)
	for range 3 {
		require.Equal(f, http.StatusOK, f.get(d, "x-user: spent-"+user).StatusCode)
	}
	require.Equal(f, http.StatusTooManyRequests, f.get(d, "x-user: spent-"+user).StatusCode)
	l := startLoad(f, d, user)
	l.more(f.T, rolloutAround)
	restart(l)
	l.more(f.T, rolloutAround)
	l.end()
	require.Empty(f, l.others)
	res := f.get(d, "x-user: "+user)
	left, err := strconv.Atoi(res.Header.Get("X-Ratelimit-Remaining"))
	require.NoError(f, err, res.Status)
	counted := rolloutLimit - left - 1
	// A request that failed may have been counted.
	require.LessOrEqual(f, counted, l.answered+l.failed)
	return rollout{answered: l.answered, failed: l.failed, forgotten: max(l.answered-counted, 0),
		countedFailed: max(counted-l.answered, 0), longest: l.longest,
		spentIsDenied: f.get(d, "x-user: spent-"+user).StatusCode == http.StatusTooManyRequests}
}

// healthChecks keep Envoy away from a node that is not ready.
const healthChecks = `
      health_checks:
        - { timeout: 1s, interval: 0.1s, no_traffic_interval: 0.1s, unhealthy_threshold: 1, healthy_threshold: 1,
            grpc_health_check: {} }
`

const rolloutFilter = "failure_mode_deny: true\n                      enable_x_ratelimit_headers: DRAFT_VERSION_03"

// TestForeignRollout measures what restarts do to the counts of weir and of envoyproxy/ratelimit with Redis 7, under
// a steady load through Envoy. weir must forget nothing.
func TestForeignRollout(t *testing.T) {
	needsEnvoy(t)
	root, dir := limitsDir(t, rolloutLimits)
	users := 0
	newUser := func() string { users++; return fmt.Sprint("user", users) }
	rows := []string{"| restarted | failed | of these counted | longest time without a decision | forgotten | " +
		"spent quota |"}
	row := func(name string, r rollout, keeps bool) {
		t.Helper()
		spent := "denied"
		if !r.spentIsDenied {
			spent = "allowed again"
		}
		rows = append(rows, fmt.Sprintf("| %s | %d of %d | %d | %d ms | %d | %s |", name, r.failed, r.failed+r.answered,
			r.countedFailed, r.longest.Milliseconds(), r.forgotten, spent))
		require.Equal(t, keeps, r.forgotten == 0, "%s: %+v", name, r)
		require.Equal(t, keeps, r.spentIsDenied, "%s: %+v", name, r)
	}
	t.Cleanup(func() { t.Log("\n" + strings.Join(rows, "\n")) })
	weirOf := func(args ...string) (*weir, *door) {
		d := &door{services: []string{freeport.Addr(t)}, filter: rolloutFilter}
		w := newWeir(t, freeport.Addr(t), ofLostNodes, append([]string{"--data-dir", t.TempDir(), "--rls",
			d.services[0], "--envoy-config", dir}, args...)...)
		w.Start()
		return w, d
	}

	w, d := weirOf()
	row("weir alone, stopped", startFront(t, d).roll(d, newUser(), func(*steadyLoad) { w.stop(); w.Start() }), true)
	w.kill()
	w, d = weirOf("--durability=fsync")
	row("weir alone with --durability fsync, killed",
		startFront(t, d).roll(d, newUser(), func(*steadyLoad) { w.kill(); w.Start() }), true)
	w.kill()

	for _, end := range []struct {
		name    string
		how     func(*weir)
		cluster string
	}{
		{"stopped", (*weir).stop, ""}, {"stopped, Envoy with health checks", (*weir).stop, healthChecks},
		{"killed", (*weir).kill, ""},
	} {
		services := freeport.Addrs(t, len(nodeIDs))
		c := startClusterOf(t, nil, func(i int) []string {
			return []string{"--rls", services[i], "--envoy-config", dir}
		})
		d = &door{services: services, filter: rolloutFilter, cluster: end.cluster}
		row("three nodes, each "+end.name, startFront(t, d).roll(d, newUser(), func(l *steadyLoad) {
			for _, id := range nodeIDs {
				end.how(c.nodes[id])
				c.nodes[id].Start()
				c.awaitReady(id)
				l.more(t, rolloutAround)
			}
		}), true)
		for _, w := range c.nodes {
			w.kill()
		}
	}

	store := &restartable{t: t, dir: t.TempDir()}
	store.start()
	t.Cleanup(func() { store.end(syscall.SIGKILL) })
	r := startRatelimit(t, root, store.socket())
	d = &door{services: []string{r.grpc}, filter: rolloutFilter}
	f := startFront(t, d)
	for _, other := range []struct {
		name  string
		how   func()
		keeps bool
	}{
		{"envoyproxy/ratelimit stopped, its Redis goes on", func() { r.stop(); r.start() }, true},
		{"its Redis stopped, with the same directory", func() { store.end(syscall.SIGTERM); store.start() }, true},
		{"its Redis killed, with the same directory", func() { store.end(syscall.SIGKILL); store.start() }, false},
		{"its Redis replaced, with a new directory", func() {
			store.end(syscall.SIGTERM)
			store.empty()
			store.start()
		}, false},
	} {
		row(other.name, f.roll(d, newUser(), func(*steadyLoad) { other.how() }), other.keeps)
	}
}

// restartable is a Redis 7 with its default settings: it saves at times, and when it is stopped.
type restartable struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

func (r *restartable) socket() string { return filepath.Join(r.dir, "s") }

func (r *restartable) start() {
	r.cmd = exec.Command(tool(r.t, "redis-server", "redis-server"), "--port", "0", "--unixsocket", r.socket(), "--dir",
		r.dir)
	require.NoError(r.t, r.cmd.Start())
	until(r.t, "Redis does not start", func() bool {
		c, err := net.Dial("unix", r.socket())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

func (r *restartable) end(signal syscall.Signal) {
	_ = r.cmd.Process.Signal(signal)
	_ = r.cmd.Wait()
}

// empty removes what Redis has saved.
func (r *restartable) empty() { require.NoError(r.t, os.RemoveAll(filepath.Join(r.dir, "dump.rdb"))) }
