package systems

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

const (
	marketplaceToken = "the bot's token"
	// marketplaceStart bounds the start of Spring, which takes half a minute on a busy machine.
	marketplaceStart = 5 * time.Minute
)

// buildMarketplace builds the program in a copy of its directory, as its README says.
func buildMarketplace(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("marketplace")))
	cmd := exec.CommandContext(t.Context(), "mvn", "--batch-mode", "package")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: the marketplace cannot be built: %v\n%s", err, out)
	}
	require.NoError(t, err, "%s", out)
	return dir
}

// marketplaceApp is the running program, and the two APIs that it calls.
type marketplaceApp struct {
	t    *testing.T
	addr string
	ton  *marketplaceAPI
	bot  *marketplaceAPI
}

// startMarketplace starts the program with these nodes of weir. The program ends with the test.
func startMarketplace(t *testing.T, dir string, weir ...string) *marketplaceApp {
	t.Helper()
	m := &marketplaceApp{t: t, addr: marketplaceAddr(t), ton: startMarketplaceAPI(t), bot: startMarketplaceAPI(t)}
	cmd := marketplaceCommand(dir, m.addr, weir...)
	cmd.Env = append(cmd.Env, "TON="+m.ton.url, "BOT="+m.bot.url)
	marketplaceRun(t, cmd, m.addr)
	return m
}

func marketplaceCommand(dir, listen string, weir ...string) *exec.Cmd {
	cmd := exec.Command("java", "-jar", "target/marketplace.jar")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEIR="+strings.Join(weir, ","), "LISTEN="+listen,
		"BOT_TOKEN="+marketplaceToken, "ADMINS=1")
	return cmd
}

// marketplaceRun runs a server until the test ends, and waits until it listens.
func marketplaceRun(t *testing.T, cmd *exec.Cmd, addr string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
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
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, text)
		}
		_ = log.Close()
	})
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			t.Errorf("%s ended", cmd.Path)
			return true
		default:
		}
		c, err := net.Dial("tcp", addr)
		return err == nil && c.Close() == nil
	}, marketplaceStart, 20*time.Millisecond)
	require.False(t, t.Failed())
}

// marketplaceAddr returns an address that was free a moment ago.
func marketplaceAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// marketplaceAPI imitates an API that the program calls, and records the calls.
type marketplaceAPI struct {
	url string

	mu    sync.Mutex
	calls []string // path and body of each
	at    []time.Time
}

func startMarketplaceAPI(t *testing.T) *marketplaceAPI {
	a := new(marketplaceAPI)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.calls = append(a.calls, r.URL.Path+" "+string(body))
		a.at = append(a.at, time.Now())
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(web.Close)
	a.url = web.URL
	return a
}

// count returns how many calls contain words.
func (a *marketplaceAPI) count(words string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, call := range a.calls {
		if strings.Contains(call, words) {
			n++
		}
	}
	return n
}

// times returns when each call that contains words arrived.
func (a *marketplaceAPI) times(words string) (at []time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, call := range a.calls {
		if strings.Contains(call, words) {
			at = append(at, a.at[i])
		}
	}
	return at
}

// marketplaceAnswer is a response that has been read.
type marketplaceAnswer struct {
	status int
	header http.Header
	text   string
	body   map[string]any // of a JSON object
	took   time.Duration
}

// marketplaceRequest is a request of a user from an address.
type marketplaceRequest struct {
	method, path, user, address, body string
	token                             string // in place of the user's own
}

func (m *marketplaceApp) do(q marketplaceRequest) (a marketplaceAnswer) {
	start := time.Now()
	r, err := http.NewRequestWithContext(m.t.Context(), q.method, "http://"+m.addr+q.path, strings.NewReader(q.body))
	if err != nil {
		m.t.Error(err)
		return a
	}
	r.Header.Set("Content-Type", "application/json")
	if q.user != "" {
		r.Header.Set("Authorization", "Bearer "+q.user+"."+marketplaceSign("session:"+q.user))
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.address != "" {
		r.Header.Set("X-Forwarded-For", q.address)
	}
	res, err := marketplaceClient.Do(r)
	if err != nil {
		m.t.Error(err)
		return a
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		m.t.Error(err)
	}
	a = marketplaceAnswer{status: res.StatusCode, header: res.Header, text: string(text), took: time.Since(start)}
	_ = json.Unmarshal(text, &a.body)
	return a
}

var marketplaceClient = &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func (m *marketplaceApp) get(path, user string) marketplaceAnswer {
	return m.do(marketplaceRequest{method: http.MethodGet, path: path, user: user})
}

func (m *marketplaceApp) post(path, user, body string) marketplaceAnswer {
	return m.do(marketplaceRequest{method: http.MethodPost, path: path, user: user, body: body})
}

// login tries to log a user in, with the right hash or a wrong one.
func (m *marketplaceApp) login(user, address string, right bool) marketplaceAnswer {
	return m.do(m.loginRequest(user, address, right))
}

func (m *marketplaceApp) loginRequest(user, address string, right bool) marketplaceRequest {
	hash := "wrong"
	if right {
		hash = marketplaceSign("login:" + user)
	}
	return marketplaceRequest{method: http.MethodPost, path: "/api/v1/auth/validate", address: address,
		body: fmt.Sprintf(`{"telegramUserId":%q,"hash":%q}`, user, hash)}
}

// passes sends a request n times, and returns how often it was admitted and the last answer. Every other answer must
// be 429.
func (m *marketplaceApp) passes(n int, q marketplaceRequest) (passed int, last marketplaceAnswer) {
	for range n {
		if last = m.do(q); last.status != http.StatusTooManyRequests {
			require.Less(m.t, last.status, 300, "%s", last.text)
			passed++
		}
	}
	return passed, last
}

// meter reads a counter from the program's metrics. It returns "0" if the counter does not exist.
func (m *marketplaceApp) meter(series string) string {
	for line := range strings.Lines(m.get("/actuator/prometheus", "").text) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSuffix(strings.TrimSpace(value), ".0")
		}
	}
	return "0"
}

func marketplaceSign(text string) string {
	mac := hmac.New(sha256.New, []byte(marketplaceToken))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// marketplaceWeir is a weir whose clock only pass moves. says sends it the commands of the document.
type marketplaceWeir struct {
	*weirproc.Server
	t   *testing.T
	rdb *redis.Client
}

func startMarketplaceWeir(t *testing.T, args ...string) *marketplaceWeir {
	t.Helper()
	s := weirproc.Start(t, append([]string{"--blacklist-key", "rl:blacklist:ip", "--test-clock"}, args...)...)
	return &marketplaceWeir{s, t, s.Redis()}
}

// says sends a command and requires its answer, whose elements blanks separate.
func (w *marketplaceWeir) says(want, line string) {
	w.t.Helper()
	require.Equal(w.t, want, marketplaceSay(w.t.Context(), w.rdb, line), line)
}

// pass moves weir's clock forward.
func (w *marketplaceWeir) pass(d time.Duration) {
	w.t.Helper()
	w.says("OK", fmt.Sprintf("DEBUG CLOCK ADVANCE %d", d.Milliseconds()))
}

func marketplaceSay(ctx context.Context, rdb *redis.Client, line string) string {
	var args []any
	for _, word := range strings.Fields(line) {
		args = append(args, word)
	}
	answer, err := rdb.Do(ctx, args...).Result()
	if err != nil {
		return err.Error()
	}
	list, ok := answer.([]any)
	if !ok {
		return fmt.Sprint(answer)
	}
	var words bytes.Buffer
	for i, element := range list {
		if i > 0 {
			words.WriteByte(' ')
		}
		fmt.Fprint(&words, element)
	}
	return words.String()
}
