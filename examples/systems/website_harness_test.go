package systems

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// website is a running program with the website's limits, and its log.
type website struct {
	t   *testing.T
	url string

	mu  sync.Mutex
	log strings.Builder
}

// websiteStart bounds the start of a program. Spring needs half a minute on a busy machine.
const websiteStart = 3 * time.Minute

// startWebsite starts a program, and waits until it logs its port. The program ends with the test.
func startWebsite(t *testing.T, cmd *exec.Cmd, listens *regexp.Regexp) *website {
	t.Helper()
	w, ready := &website{t: t}, make(chan string, 1)
	out, in, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = in, in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // including its own child processes
	require.NoError(t, cmd.Start())
	_ = in.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.mu.Lock()
			w.log.WriteString(lines.Text() + "\n")
			w.mu.Unlock()
			if found := listens.FindStringSubmatch(lines.Text()); found != nil {
				ready <- found[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		_ = cmd.Wait()
		_ = out.Close()
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, w.logged())
		}
	})
	select {
	case port := <-ready:
		w.url = "http://127.0.0.1:" + port
	case <-ended:
		t.Fatal("the program ended instead of serving")
	case <-time.After(websiteStart):
		t.Fatal("the program does not serve")
	}
	return w
}

func (w *website) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// logs waits for a line of the log. The program may write it after its answer.
func (w *website) logs(line string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return strings.Contains(w.logged(), line) }, weirproc.Wait,
		10*time.Millisecond, line)
}

// websiteJar builds the Java program in its own directory, once.
var websiteJar = sync.OnceValues(func() (jar string, err error) {
	out, err := exec.Command("mvn", "--batch-mode", "--quiet", "--file", "website/pom.xml", "package").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return filepath.Join("website", "target", "website.jar"), nil
})

// tomcatPort finds the port in Spring Boot's log.
var tomcatPort = regexp.MustCompile(`Tomcat started on port (\d+)`)

// javaWebsite starts the Java program on a store. The settings override application.yml. If the build fails, for
// example without a network, it skips the test, but never in CI.
func javaWebsite(t *testing.T, addr string, settings ...string) *website {
	t.Helper()
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	jar, err := websiteJar()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: the website cannot be built: %v\n%s", err, jar)
	}
	require.NoError(t, err, jar)
	host, port, _ := strings.Cut(addr, ":")
	args := []string{"-jar", jar, "--server.port=0", "--spring.data.redis.host=" + host,
		"--spring.data.redis.port=" + port}
	for _, setting := range settings {
		args = append(args, "--"+setting)
	}
	cmd := exec.Command("java", args...)
	cmd.Env = append(os.Environ(), "SPRING_DATA_REDIS_TIMEOUT=10s") // for a busy machine; settings take precedence
	return startWebsite(t, cmd, tomcatPort)
}

// websiteRequest is a request of a client behind the load balancer.
type websiteRequest struct {
	method, path string
	headers      []string // names and values
}

func from(ip, method, path string) websiteRequest {
	return websiteRequest{method, path, []string{"X-Forwarded-For", ip}}
}

// preflight is what a browser sends before a request of another origin.
func preflight(ip, path string) websiteRequest {
	return websiteRequest{"OPTIONS", path, []string{"X-Forwarded-For", ip,
		"Origin", "https://app.example", "Access-Control-Request-Method", "GET"}}
}

// websiteAnswer is the part of an answer that the filter determines.
type websiteAnswer struct {
	status                int
	remaining, retryAfter string
	contentType           string
	body                  []byte
}

// brief returns the status, X-RateLimit-Remaining and Retry-After.
func (a websiteAnswer) brief() string {
	return strings.TrimSpace(strconv.Itoa(a.status) + " " + a.remaining + " " + a.retryAfter)
}

var websiteClient = &http.Client{Timeout: weirproc.Wait}

// send sends a request without changing its path.
func (w *website) send(q websiteRequest) (a websiteAnswer, err error) {
	var content io.Reader
	if q.method != http.MethodOptions {
		content = strings.NewReader(`{"username":"test","password":"wrong"}`)
	}
	r, err := http.NewRequest(q.method, w.url, content)
	if err != nil {
		return a, err
	}
	r.URL.Opaque = q.path
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(q.headers); i += 2 {
		r.Header.Add(q.headers[i], q.headers[i+1])
	}
	res, err := websiteClient.Do(r)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	h := res.Header
	return websiteAnswer{res.StatusCode, h.Get("X-RateLimit-Remaining"), h.Get("Retry-After"), h.Get("Content-Type"),
		bytes.TrimSpace(body)}, err
}

// says checks the brief answer to a request.
func (w *website) says(want string, q websiteRequest) websiteAnswer {
	w.t.Helper()
	a, err := w.send(q)
	require.NoError(w.t, err)
	require.Equal(w.t, want, a.brief(), "%s %s", q.method, q.path)
	return a
}

// refuses checks that a request is denied as in the document, member by member.
func (w *website) refuses(limit string, retryAfter int, q websiteRequest) {
	w.t.Helper()
	seconds := strconv.Itoa(retryAfter)
	a := w.says("429 0 "+seconds, q)
	require.Equal(w.t, "application/problem+json", a.contentType)
	var problem map[string]any
	require.NoError(w.t, json.Unmarshal(a.body, &problem), "%s", a.body)
	require.Regexp(w.t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}Z|\+00:00)$`, problem["timestamp"])
	delete(problem, "timestamp")
	require.Equal(w.t, map[string]any{
		"type": "https://aquastream.org/problems/rate-limit-exceeded", "title": "Too Many Requests", "status": 429.0,
		"detail":    "Rate limit exceeded for " + limit + " requests. Please retry after " + seconds + " seconds.",
		"limitType": limit, "retryAfter": float64(retryAfter),
	}, problem)
}
