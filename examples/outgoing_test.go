package examples

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

const (
	numPrograms                    = 3
	outgoingWorkers, outgoingCalls = 16, 200 // of each program
	providerRate, providerBurst    = 60, 20  // calls a second, and at once
	shortPause, longPause          = 2, 5    // seconds
)

// service is what the programs call. It answers 429 beyond its rate and while it pauses.
type service struct {
	mu       sync.Mutex
	programs map[string]*caller
	all      chan struct{} // closed when every program has called; until then calls wait for their answers
	pauses   []*pause
	tokens   float64
	at       time.Time // of tokens
	tooFast  int       // calls beyond the rate
	accepted int
	started  time.Time // of the measurement, when every program has called
	before   int       // accepted calls before it
	ended    time.Time // of the last accepted call
}

// caller is a program that calls the provider.
type caller struct {
	number   int
	accepted int
}

// pause begins when each program has a call in flight. These calls are told different times, and the longest one counts.
type pause struct {
	after   int // accepted calls of each program before it
	asked   map[string]bool
	begun   chan struct{}
	from    time.Time
	until   time.Time
	refused map[string]int // by worker
}

func newService() *service {
	p := &service{programs: map[string]*caller{}, all: make(chan struct{}), tokens: providerBurst, at: time.Now()}
	for _, after := range []int{40, 80, 120} {
		p.pauses = append(p.pauses, &pause{
			after: after, asked: map[string]bool{}, begun: make(chan struct{}), refused: map[string]int{}})
	}
	return p
}

func (p *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	worker := r.Header.Get("Worker")
	if retryAfter := p.answer(r, strings.TrimRight(worker, "0123456789-_"), worker); retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	select {
	case <-p.all:
	case <-r.Context().Done():
	}
}

// answer accepts a call, or returns its Retry-After.
func (p *service) answer(r *http.Request, program, worker string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.programs[program]
	if c == nil {
		c = &caller{number: len(p.programs)}
		if p.programs[program] = c; len(p.programs) == numPrograms {
			p.started, p.before = time.Now(), p.accepted
			close(p.all)
		}
	}
	for i, x := range p.pauses {
		switch {
		case time.Now().Before(x.until):
			x.refused[worker]++
			return strconv.Itoa(shortPause)
		case x.until.IsZero() && p.due(x) && !x.asked[program]:
			x.refused[worker]++
			if x.asked[program] = true; len(x.asked) == numPrograms {
				x.from = time.Now()
				x.until = x.from.Add((longPause + 1) * time.Second).Truncate(time.Second)
				close(x.begun)
			}
			p.mu.Unlock()
			select {
			case <-x.begun:
			case <-r.Context().Done():
			}
			p.mu.Lock()
			return []string{strconv.Itoa(shortPause), strconv.Itoa(longPause),
				x.until.UTC().Format(http.TimeFormat)}[(c.number+i)%numPrograms]
		}
	}
	now := time.Now()
	p.tokens = min(p.tokens+now.Sub(p.at).Seconds()*providerRate, providerBurst)
	if p.at = now; p.tokens < 1 {
		p.tooFast++
		return "1"
	}
	p.tokens--
	c.accepted++
	p.accepted++
	p.ended = now
	return ""
}

// acceptedNow returns how many calls were accepted so far.
func (p *service) acceptedNow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// due reports whether every program has made the calls before a pause.
func (p *service) due(x *pause) bool {
	for _, c := range p.programs {
		if c.accepted < x.after {
			return false
		}
	}
	return len(p.programs) == numPrograms
}

// TestOutgoing lets programs in three languages call one provider.
func TestOutgoing(t *testing.T) {
	needExamples(t)
	need(t, "on Debian: apt install python3-venv nodejs npm", "python3", "node", "npm")
	dir := copied(t, "outgoing", nil)
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "outgoing"), "./outgoing").CombinedOutput()
	require.NoError(t, err, "%s", out)
	setUp := exec.CommandContext(t.Context(), "sh", "-c", "npm install --silent && python3 -m venv venv && "+
		"venv/bin/pip install --quiet --requirement requirements.txt")
	setUp.Dir = dir
	if out, err = setUp.CombinedOutput(); err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: the programs cannot be installed: %v\n%s", err, out)
	}
	require.NoError(t, err, "%s", out)
	t.Run("pauses", func(t *testing.T) { pauses(t, dir) })
	t.Run("failovers", func(t *testing.T) { outgoingFailovers(t, dir) })
}

// callAll sets the policy of the README, runs the programs against a provider while during runs, and returns what they
// say.
func callAll(t *testing.T, dir string, p *service, weir *weirproc.Server, nodes []string, during func(),
) map[string]*outcome {
	require.Eventually(t, func() bool {
		return weir.Redis().Do(t.Context(), redisArgs(readmeOf(t, "outgoing").steps[0].commands[0])...).Err() == nil
	}, weirproc.Wait, 10*time.Millisecond)
	called := httptest.NewServer(p)
	defer called.Close()
	var all sync.WaitGroup
	said := map[string]*outcome{}
	for _, argv := range [][]string{{"venv/bin/python", "outgoing.py"}, {"node", "outgoing.mjs"},
		{filepath.Join(dir, "outgoing")}} {
		said[argv[0]] = &outcome{}
		argv := append(argv, called.URL, strconv.Itoa(outgoingWorkers), strconv.Itoa(outgoingCalls))
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		var stdout, stderr bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		cmd.Env = append(os.Environ(), "WEIR="+strings.Join(nodes, ","))
		all.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%s: %v: %s", argv[0], err, stderr.String())
			} else if err := json.Unmarshal(stdout.Bytes(), said[argv[0]]); err != nil {
				t.Errorf("%s: %v: %s", argv[0], err, stdout.String())
			}
		})
	}
	during()
	all.Wait()
	for program, s := range said {
		require.Equal(t, outgoingCalls, s.Calls, program)
	}
	return said
}

// outcome is what a program prints.
type outcome struct{ Calls, Refused int }

// outgoingFailovers kills the leader of three nodes twice. Every program makes all of its calls, at the rate of the
// provider.
func outgoingFailovers(t *testing.T, dir string) {
	cluster, p := weirproc.StartCluster(t), newService()
	p.pauses = nil
	callAll(t, dir, p, cluster.Leader(), cluster.Addrs(), func() {
		for kill := range 2 {
			due := numPrograms * outgoingCalls * (kill + 1) / 3
			assert.Eventually(t, func() bool { return p.acceptedNow() >= due }, 2*weirproc.Wait, time.Millisecond)
			cluster.KillLeader().Start()
		}
	})
	require.Equal(t, numPrograms*outgoingCalls, p.accepted)
	t.Logf("%d calls were too fast", p.tooFast)
	require.LessOrEqual(t, p.tooFast, outgoingWorkers)
}

// pauses lets the provider pause three times. The calls in flight at the beginning of a pause are told different times,
// in different forms. Every worker waits for the longest one: none is refused twice, and most are not refused at all.
// Between the pauses the programs use the rate of the provider.
func pauses(t *testing.T, dir string) {
	weir, p := weirproc.Start(t), newService()
	said := callAll(t, dir, p, weir, []string{weir.Addr}, func() {})
	refused, open := p.tooFast, p.ended.Sub(p.started)
	for _, x := range p.pauses {
		require.False(t, x.until.IsZero(), "the provider did not pause")
		for worker, times := range x.refused {
			require.Equal(t, 1, times, "%s called again in the pause of which it was told", worker)
			refused += times
		}
		open -= x.until.Sub(x.from)
		t.Logf("%d calls were refused in a pause", len(x.refused))
		require.LessOrEqual(t, len(x.refused), outgoingWorkers, "most of %d workers learn it from weir",
			numPrograms*outgoingWorkers)
	}
	share := float64(p.accepted-p.before) / (open.Seconds() * providerRate)
	t.Logf("%d calls were too fast; %.0f %% of the rate in %.1f s", p.tooFast, 100*share, open.Seconds())
	sum := 0
	for _, s := range said {
		sum += s.Refused
	}
	require.Equal(t, refused, sum)
	require.LessOrEqual(t, p.tooFast, outgoingWorkers)
	require.GreaterOrEqual(t, share, 0.75)
}

// redisArgs returns the arguments of a command of redis-cli in a README.
func redisArgs(command string) (all []any) {
	for _, word := range strings.Fields(strings.TrimPrefix(command, redisCLI)) {
		all = append(all, word)
	}
	return all
}
