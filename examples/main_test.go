package examples

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirproc"
	"github.com/weir-project/weir/internal/weirtest"
)

const (
	limit, workers, each = 200, 8, 50
	policy               = "api"
	// startWait bounds the start of a server. Spring needs half a minute on a busy machine.
	startWait = 3 * time.Minute
	// The addresses in the files of the examples.
	weirHTTP, appAddr, listenAddr = "127.0.0.1:6381", "127.0.0.1:3000", "127.0.0.1:8080"
)

func TestMain(m *testing.M) { os.Exit(weirproc.Main(m)) }

// startWeir starts a weir with a test clock and the policy of the examples.
func startWeir(t *testing.T) *weirtest.Server { return startWeirWith(t, policy) }

func startWeirWith(t *testing.T, policy string) *weirtest.Server {
	s := weirtest.Start(t)
	limits, err := client.New(s.Redis(), client.Options{WhenDown: client.Closed, Timeout: weirtest.Wait})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, limits.Close()) })
	_, err = limits.SetPolicy(
		t.Context(), policy, client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, limit)}})
	require.NoError(t, err)
	return s
}

// need skips a test whose tools are missing, and prints how to install them.
func need(t *testing.T, how string, tools ...string) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is missing (%s)", tool, how)
		}
	}
}

// copied copies an example, replaces its addresses unless the replacer is nil, and returns the directory.
func copied(t *testing.T, example string, addresses *strings.Replacer) string {
	dir := t.TempDir()
	require.NoError(t, fs.WalkDir(os.DirFS(example), ".", func(path string, entry fs.DirEntry, err error) error {
		to := filepath.Join(dir, path)
		if err != nil || entry.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := os.ReadFile(filepath.Join(example, path))
		require.NoError(t, err)
		if addresses != nil {
			text = []byte(addresses.Replace(string(text)))
		}
		return os.WriteFile(to, text, 0o644)
	}))
	return dir
}

// run runs a server until the test ends, and waits until it listens. It returns the server's output.
func run(t *testing.T, cmd *exec.Cmd, addr string) *logtest.Buffer {
	log := new(logtest.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // including its own child processes
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, log.String())
		}
	})
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}, startWait, 20*time.Millisecond)
	select {
	case <-ended:
		t.Fatal("the server ended instead of serving")
	default:
	}
	return log
}

// visitor is a client with its own address.
func visitor(t *testing.T, ip string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	transport := &http.Transport{MaxIdleConnsPerHost: workers,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: weirtest.Wait}
}

func get(t *testing.T, c *http.Client, addr string) (*http.Response, []byte) {
	res, err := c.Get("http://" + addr + "/")
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, body
}

// hammer sends more requests of one client than its limit allows, on several connections, and one request of another
// client. Exactly the limit must be admitted, and the answers must report it.
func hammer(t *testing.T, addr string) { hammerUnder(t, addr, policy) }

func hammerUnder(t *testing.T, addr, policy string) {
	var admitted, denied atomic.Int64
	var all sync.WaitGroup
	one := visitor(t, "127.0.0.7")
	for range workers {
		all.Go(func() {
			for range each {
				switch res, err := one.Get("http://" + addr + "/"); {
				case err != nil:
					t.Error(err)
					return
				case res.StatusCode == http.StatusOK:
					admitted.Add(1)
					drain(res)
				case res.StatusCode == http.StatusTooManyRequests:
					denied.Add(1)
					drain(res)
				default:
					t.Error(res.Status)
					drain(res)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, limit, admitted.Load(), "exactly the limit")
	require.EqualValues(t, workers*each-limit, denied.Load())

	res, body := get(t, one, addr)
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Equal(t, "3600", res.Header.Get("Retry-After"))
	require.Equal(t, `"`+policy+`";r=0;t=3600`, res.Header.Get("RateLimit"))
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	var problem struct {
		Type, Title string
		Status      int
	}
	require.NoError(t, json.Unmarshal(body, &problem), "%s", body)
	require.Equal(t, http.StatusTooManyRequests, problem.Status)
	require.Equal(t, "https://iana.org/assignments/http-problem-types#quota-exceeded", problem.Type)
	require.NotEmpty(t, problem.Title)
}

// another checks that a different client has its own limit and learns its remaining units.
func another(t *testing.T, addr string) {
	res, _ := get(t, visitor(t, "127.0.0.8"), addr)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, `"api";r=199;t=3600`, res.Header.Get("RateLimit"))
}

// closed checks that without weir every request is denied, with a reason.
func closed(t *testing.T, addr string) {
	res, body := get(t, visitor(t, "127.0.0.9"), addr)
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.Contains(t, string(body), "#temporary-reduced-capacity")
}

func drain(res *http.Response) {
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
}
