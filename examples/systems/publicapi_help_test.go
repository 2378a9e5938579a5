package systems

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// publicAPIPolicies is the policy file of the public API.
const publicAPIPolicies = "../../docs/examples/public-api.yaml"

// publicAPI is a process of the public API.
type publicAPI struct {
	t    *testing.T
	addr string
}

// publicAPIBinary builds the service in Go.
func publicAPIBinary(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "public-api")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "public-api"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// startPublicAPI starts the service with an environment, and ends it with the test.
func startPublicAPI(t *testing.T, weir string, argv []string, env ...string) *publicAPI {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "WEIR="+weir, "LISTEN=127.0.0.1:0", "TIMEOUT_MS=10000",
		"TRUSTED_PROXIES=127.0.0.0/8"), env...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, addr := new(strings.Builder), make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(said, lines.Text())
			if _, after, ok := strings.Cut(lines.Text(), "listening on http://"); ok {
				addr <- after
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the public API said:\n%s", said)
		}
	})
	api := &publicAPI{t: t}
	select {
	case api.addr = <-addr:
	case <-ended:
		t.Fatalf("the public API did not start:\n%s", said)
	case <-time.After(weirproc.Wait):
		t.Fatal("the public API is not ready")
	}
	return api
}

// ask sends a request with headers, given as names and values.
func (a *publicAPI) ask(method, path string, headers ...string) (*http.Response, string) {
	r, err := http.NewRequestWithContext(context.WithoutCancel(a.t.Context()), method, "http://"+a.addr+path, nil)
	require.NoError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(a.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(a.t, err)
	return res, string(body)
}

// passes sends n requests and returns how many were answered with 200. The others must be 429.
func (a *publicAPI) passes(n int, method, path string, headers ...string) (passed int) {
	a.t.Helper()
	for range n {
		switch res, _ := a.ask(method, path, headers...); res.StatusCode {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			a.t.Fatal(res.Status)
		}
	}
	return passed
}

// passesAtOnce sends n requests at the same time, and returns how many were answered with 200.
func (a *publicAPI) passesAtOnce(n int, path string, headers ...string) int {
	var passed atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if res, _ := a.ask(http.MethodGet, path, headers...); res.StatusCode == http.StatusOK {
				passed.Add(1)
			}
		})
	}
	all.Wait()
	return int(passed.Load())
}

// installed waits until the limits of the environment are in force. The service stores them one by one, and last is the
// last of them.
func (a *publicAPI) installed(rdb *redis.Client, last string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		return rdb.Do(a.t.Context(), "RL.POLICY", "GET", last).Err() == nil
	}, weirproc.Wait, 5*time.Millisecond)
}

// command sends a line of words to weir.
func command(t *testing.T, rdb *redis.Client, line string) any {
	t.Helper()
	var words []any
	for _, word := range strings.Fields(line) {
		words = append(words, word)
	}
	reply, err := rdb.Do(t.Context(), words...).Result()
	require.NoError(t, err, line)
	return reply
}

// passTime moves the test clock of a weir forward.
func passTime(t *testing.T, rdb *redis.Client, d time.Duration) {
	t.Helper()
	command(t, rdb, fmt.Sprint("DEBUG CLOCK ADVANCE ", d.Milliseconds()))
}

// passTimeUntil moves the test clock forward until the wall clock is into after the start of a minute.
func passTimeUntil(t *testing.T, rdb *redis.Client, into time.Duration) {
	t.Helper()
	now, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	rest := into - time.Duration(now.UnixNano()%int64(time.Minute))
	passTime(t, rdb, (rest+time.Minute)%time.Minute)
}
