package systems

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirproc"
)

const (
	gatewayRoute = "550e8400-e29b-41d4-a716-446655440000"
	// The limits of the gateway's route, and those of the fallback.
	gatewayRate, gatewayBurst           = 10, 15
	gatewayLocalRate, gatewayLocalBurst = 5, 7
)

// gatewayWords are the log messages of a gateway at the beginning and the end of an outage.
type gatewayWords struct{ begins, ends, warning string }

var (
	gatewayJavaWords = gatewayWords{"the store does not decide", "the store answers again", " WARN "}
	gatewayGoWords   = gatewayWords{"weir is not reached", "weir answers again", " WARN "}
)

// gatewayUpstream is the server behind the gateway. It answers with the lines of the header X-Lines that it gets.
func gatewayUpstream(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Lines"] = r.Header["X-Lines"]
		_, _ = w.Write([]byte("ok\n"))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// gatewayClient keeps connections, because a gateway once read no further request from some of them.
var gatewayClient = &http.Client{Timeout: weirproc.Wait, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}

// get sends a request of a client. Several clients are several lines of X-Forwarded-For.
func (p *gatewayProcess) get(path string, clients ...string) (*http.Response, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+path, nil)
	require.NoError(p.t, err)
	req.Header["X-Forwarded-For"] = clients
	req.Header.Set("X-Correlation-Id", "abc-123-def")
	res, err := gatewayClient.Do(req)
	require.NoError(p.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(p.t, err)
	return res, string(body)
}

// storm sends concurrent requests of one client until one is denied. It checks the number of admitted requests
// against the limit: the burst, and the refill during the test.
func (p *gatewayProcess) storm(client string, rate, burst int) (denied *http.Response, body string) {
	p.t.Helper()
	begun, admitted := time.Now(), atomic.Int64{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for time.Since(begun) < weirproc.Wait {
				res, text := p.get("/api/orders", client)
				mu.Lock()
				over := denied != nil
				if res.StatusCode == http.StatusTooManyRequests && !over {
					denied, body = res, text
				}
				mu.Unlock()
				if res.StatusCode == http.StatusOK {
					admitted.Add(1)
				}
				if over || res.StatusCode != http.StatusOK {
					return
				}
			}
		})
	}
	all.Wait()
	require.NotNil(p.t, denied, "nothing was denied, of %d", admitted.Load())
	require.GreaterOrEqual(p.t, admitted.Load(), int64(burst))
	require.LessOrEqual(p.t, float64(admitted.Load()), float64(burst)+time.Since(begun).Seconds()*float64(rate)+1)
	return denied, body
}

// gatewayDrive checks what a client and an operator observe according to the document.
func gatewayDrive(t *testing.T, p *gatewayProcess, s gatewayStore, words gatewayWords) {
	gatewayHeaders(t, p)
	gatewayDenial(t, p)
	res, _ := p.get("/api/open", "192.168.1.7")
	require.Equal(t, http.StatusOK, res.StatusCode, "a route without a limit passes")
	require.Empty(t, res.Header.Get("X-RateLimit-Limit"))
	gatewayMetrics(t, p)
	gatewayLines(t, p, s)
	require.Zero(t, p.count(words.begins))
	for outage := 1; outage <= 2; outage++ {
		s.Kill()
		client := fmt.Sprintf("192.168.2.%d", outage)
		p.storm(client, gatewayLocalRate, gatewayLocalBurst)
		gatewayKept(t, p, client)
		for range 20 {
			p.get("/api/orders", "192.168.1.9")
		}
		require.Equal(t, outage, p.count(words.begins), "one line for the beginning")
		require.Equal(t, outage, p.count(words.warning), "and no other warning")
		s.Start()
		require.Eventually(t, func() bool {
			p.get("/api/orders", "192.168.1.9")
			return p.count(words.ends) == outage
		}, weirproc.Wait, 20*time.Millisecond, "it is back by itself")
		p.storm(fmt.Sprintf("192.168.3.%d", outage), gatewayRate, gatewayBurst)
	}
}

// gatewayPackage builds the Java gateway once, and returns its jar.
var gatewayPackage = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("mvn", "--batch-mode", "--quiet", "-DskipTests", "package")
	cmd.Dir = "gateway"
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Abs("gateway/target/gateway.jar")
})

func startGatewayJava(t *testing.T, s gatewayStore, withScript bool, more ...string) *gatewayProcess {
	t.Helper()
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	jar, err := gatewayPackage()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: the gateway cannot be built: %v", err)
	}
	require.NoError(t, err)
	listen := freeport.Addr(t)
	file := gatewayConfig(t, s.addr(), listen, gatewayUpstream(t), more...)
	if withScript {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lua := regexp.MustCompile(`script: file:(.*)`).FindSubmatch(text)
		require.NoError(t, os.WriteFile(string(lua[1]), []byte(script(t, gatewayScript)), 0o644))
	}
	return startGateway(t, listen, []string{"java", "-jar", jar, "--spring.config.location=file:" + file})
}

// TestGatewayJava runs the system of the document: on Redis, then on weir with only the address changed, then with
// one command of weir instead of the script.
func TestGatewayJava(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		s := startGatewayRedis(t)
		gatewayDrive(t, startGatewayJava(t, s, true), s, gatewayJavaWords)
	})
	t.Run("weir", func(t *testing.T) {
		s := startGatewayWeir(t)
		gatewayKnowsScript(t, s)
		gatewayDrive(t, startGatewayJava(t, s, true), s, gatewayJavaWords)
	})
	t.Run("weir by a command", func(t *testing.T) {
		s := startGatewayWeir(t)
		gatewayDrive(t, startGatewayJava(t, s, false, "command: script", "command: tokenbucket"), s, gatewayJavaWords)
	})
}

// TestGatewayJavaErrors checks that requests pass uncounted during an outage of the store if the fallback is off. The
// fallback also decides for a key that the store answers with an error. Such a key causes one log line, whatever the
// store answers for other keys.
func TestGatewayJavaErrors(t *testing.T) {
	s := startGatewayWeir(t)
	off := startGatewayJava(t, s, false, "command: script", "command: tokenbucket", "fallback-enabled: true",
		"fallback-enabled: false", "127.0.0.0/8", "192.0.2.0/24")
	p := startGatewayJava(t, s, false, "command: script", "command: tokenbucket")
	// A key of another algorithm answers WRONGTYPE. The gateway off trusts no proxy of this machine.
	rdb := s.Redis()
	for _, client := range []string{"192.168.4.1", "127.0.0.1"} {
		require.NoError(t, rdb.Do(t.Context(), "RL.FIXED", "ratelimit:"+gatewayRoute+":"+client, "1h", "1000").Err())
	}
	p.storm("192.168.4.1", gatewayLocalRate, gatewayLocalBurst)
	for range 3 * gatewayBurst {
		p.get("/api/orders", "192.168.4.1")
		p.get("/api/orders", "192.168.4.9")
	}
	require.Equal(t, 1, p.count("the store answers an error for ratelimit:"+gatewayRoute+":192.168.4.1"))
	require.Equal(t, 1, p.count(gatewayJavaWords.warning))
	require.Zero(t, p.count(gatewayJavaWords.begins)+p.count(gatewayJavaWords.ends))
	for range 3 * gatewayBurst {
		res, _ := off.get("/api/orders", "192.168.4.2")
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	require.Equal(t, 1, off.count("the store answers an error for ratelimit:"+gatewayRoute+":127.0.0.1"))
	require.Equal(t, 1, off.count(gatewayJavaWords.warning))
	s.Kill()
	for range 3 * gatewayBurst {
		res, _ := off.get("/api/orders", "192.168.4.3")
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	require.Equal(t, 1, off.count(gatewayJavaWords.begins))
}

// TestGatewayJavaTests runs the document's own tests on Redis and on weir.
func TestGatewayJavaTests(t *testing.T) {
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	text := script(t, gatewayScript)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("gateway")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "scripts"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scripts/token-bucket.lua"), []byte(text), 0o644))
	for name, s := range map[string]gatewayStore{"redis": startGatewayRedis(t), "weir": startGatewayWeir(t)} {
		t.Run(name, func(t *testing.T) {
			if name == "weir" {
				gatewayKnowsScript(t, s)
			}
			port := s.addr()[strings.LastIndexByte(s.addr(), ':')+1:]
			cmd := exec.Command("mvn", "--batch-mode", "--quiet", "test", "-DargLine=-Dstore.port="+port)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// buildGatewayGo builds the Go gateway.
func buildGatewayGo(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gateway")
	out, err := exec.Command("go", "build", "-o", binary, "./gateway/nethttp").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// TestGatewayGo runs the Go gateway with policies in weir. Its fallback contains no limits of its own.
func TestGatewayGo(t *testing.T) {
	s, listen := startGatewayWeir(t), freeport.Addr(t)
	file := gatewayConfig(t, s.addr(), listen, gatewayUpstream(t))
	p := startGateway(t, listen, []string{buildGatewayGo(t)}, "CONFIG="+file)
	gatewayDrive(t, p, s, gatewayGoWords)
	require.Zero(t, p.count("redis:"), "go-redis is silent")

	// An error of weir counts as an outage of the route. The last known limits apply.
	rdb := s.Redis()
	p.get("/api/orders", "192.168.5.9")
	keys, err := rdb.Keys(t.Context(), "ratelimit:"+gatewayRoute+":*").Result()
	require.NoError(t, err)
	require.Contains(t, keys, "ratelimit:"+gatewayRoute+":192.168.5.9")
	require.EqualValues(t, 1, rdb.Do(t.Context(), "RL.POLICY", "DEL", gatewayRoute).Val())
	p.storm("192.168.5.1", gatewayLocalRate, gatewayLocalBurst)
	for range gatewayBurst { // the route that weir refuses, and one that it decides
		p.get("/api/orders", "192.168.5.1")
		p.get("/api/reports", "192.168.5.1")
	}
	require.Equal(t, 1, p.count("weir answers with an error"))

	// Routes change while it runs.
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := strings.Replace(string(text), "burst-size: 15", "burst-size: 30", 1)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o644))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool {
		res, _ := p.get("/api/orders", "192.168.5.2")
		return res.StatusCode == http.StatusOK && p.count("weir decides again") == 1
	}, weirproc.Wait, 20*time.Millisecond)
	p.storm("192.168.5.3", gatewayRate, 30)
}

// TestGatewayGoTrusts checks that X-Forwarded-For counts only from the networks of the setting, and that the gateway
// does not start with an invalid network.
func TestGatewayGoTrusts(t *testing.T) {
	s, listen, binary := startGatewayWeir(t), freeport.Addr(t), buildGatewayGo(t)
	file := gatewayConfig(t, s.addr(), listen, gatewayUpstream(t), "127.0.0.0/8", "192.0.2.0/24")
	p, rdb := startGateway(t, listen, []string{binary}, "CONFIG="+file), s.Redis()
	require.Eventually(t, func() bool { // a bucket is gone when it is full, after a tenth of a second
		p.get("/api/orders", "192.168.6.1")
		keys, err := rdb.Keys(t.Context(), "ratelimit:*").Result()
		require.NoError(t, err)
		require.NotContains(t, keys, "ratelimit:"+gatewayRoute+":192.168.6.1")
		return slices.Contains(keys, "ratelimit:"+gatewayRoute+":127.0.0.1")
	}, weirproc.Wait, time.Millisecond)

	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(),
		"CONFIG="+gatewayConfig(t, s.addr(), listen, gatewayUpstream(t), "127.0.0.0/8", "localhost"))
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "gateway.ratelimit.trusted-proxies")
}
