package systems

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirproc"
)

const websitePolicies = "../../docs/examples/website.yaml"

// startPolicies starts a weir with a test clock and the website's policies.
func startPolicies(t *testing.T, args ...string) *weirproc.Server {
	return weirproc.Start(t, append([]string{"--policies", websitePolicies, "--test-clock"}, args...)...)
}

// TestWebsiteInSpring runs the Java program with weir's policies instead of Bucket4j.
func TestWebsiteInSpring(t *testing.T) {
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	s := startPolicies(t)
	w := javaWebsite(t, s.Addr, "spring.profiles.active=policies,payments",
		"aquastream.rate-limit.user-header=X-User-Id")
	w.limits(s)
	w.users()
	w.logs("[WARN] RateLimitFilter - Rate limit exceeded - Client: ip:192.168.1.100, " +
		"Endpoint: POST /api/auth/login, Limit: login, Retry after: 60s\n")
}

// TestWebsiteInGo runs the middleware for net/http.
func TestWebsiteInGo(t *testing.T) {
	s := startPolicies(t)
	binary := filepath.Join(t.TempDir(), "website")
	out, err := exec.Command("go", "build", "-o", binary, "./website/nethttp").CombinedOutput()
	require.NoError(t, err, "%s", out)
	start := func(env ...string) *website {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), append(env, "WEIR="+s.Addr, "LISTEN=127.0.0.1:0", "USER_HEADER=X-User-Id")...)
		return startWebsite(t, cmd, regexp.MustCompile(`listening on http://127.0.0.1:(\d+)`))
	}
	w := start()
	w.limits(s)
	w.users()
	w.logs(`WARN Rate limit exceeded client=ip:192.168.1.100 endpoint="POST /api/auth/login" limit=login retry_after=60s`)
	off := start("ENABLED=false")
	for range 20 {
		off.says("401", from("192.168.1.100", "POST", websiteLogin))
	}
}

// TestWebsiteInNginx checks that nginx asks weir before it forwards a request to a website without limits.
func TestWebsiteInNginx(t *testing.T) {
	need(t, "on Debian: apt install nginx-light", "nginx")
	s := startPolicies(t, "--http-check", "protected")
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == websiteLogin {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(pages.Close)
	addr, dir := freeport.Addr(t), t.TempDir()
	text, err := os.ReadFile("website/nginx.conf")
	require.NoError(t, err)
	conf := strings.NewReplacer("127.0.0.1:6381", s.HTTP, "127.0.0.1:8100", strings.TrimPrefix(pages.URL, "http://"),
		"127.0.0.1:8080", addr, "daemon off;", "daemon off; error_log stderr notice;").Replace(string(text))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600))
	w := startWebsite(t, exec.Command("nginx", "-p", dir, "-e", "stderr", "-c", "nginx.conf"),
		regexp.MustCompile(`start (worker) process \d`))
	w.url = "http://" + addr
	w.limits(s)
	log, err := os.ReadFile(filepath.Join(dir, "denials.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "[WARN] nginx - Rate limit exceeded - Client: ip:192.168.1.100, "+
		"Endpoint: POST /api/auth/login, Limit: login, Retry after: 60s\n")
}

// limits runs the checks of the document that all programs with the website's policies share. The test clock makes
// the answers exact.
func (w *website) limits(s *weirproc.Server) {
	const ip = "192.168.1.100"
	for left := 9; left >= 0; left-- {
		w.says("401 "+strconv.Itoa(left), from(ip, "POST", websiteLogin))
	}
	w.refuses("login", 60, from(ip, "POST", websiteLogin))
	w.refuses("login", 60, from(ip, "POST", "/signin"))
	w.says("401 9", from("192.0.2.1", "POST", websiteLogin))
	for left, path := range []string{"/forgot", "/reset", "/api/recovery/2", "/recovery", "/api/password/forgot?x=1"} {
		w.says("200 "+strconv.Itoa(4-left), from(ip, "POST", path))
	}
	w.refuses("recovery", 300, from(ip, "POST", "/recovery"))
	for left := 29; left >= 0; left-- {
		w.says("200 "+strconv.Itoa(left), from(ip, "GET", "/api/payments/7"))
	}
	w.refuses("payment", 1, from(ip, "GET", "/api/payments/7"))
	for left := 99; left >= 0; left-- {
		w.says("200 "+strconv.Itoa(left), from(ip, "GET", websiteUser))
	}
	w.refuses("default", 60, from(ip, "GET", websiteUser))
	for _, path := range []string{"/actuator/health", "/health", "/healthz", "/metrics", "/static/login.js",
		"/css/a.css", "/js/a.js", "/images/a.png"} {
		w.says("200", from(ip, "GET", path))
	}
	a, err := w.send(preflight(ip, websiteUser))
	require.NoError(w.t, err)
	require.Contains(w.t, []int{http.StatusOK, http.StatusForbidden}, a.status, "Spring knows no other origin")
	require.Empty(w.t, a.remaining, "a preflight request is not limited")
	w.counts("192.0.2.1", 8, "/health/../api/auth/login", "/static/%2e%2e/api/auth/login")

	rdb := s.Redis()
	require.Subset(w.t, rdb.Keys(w.t.Context(), "rate-limit:*").Val(), []string{"rate-limit:ip:192.168.1.100:login",
		"rate-limit:ip:192.168.1.100:recovery", "rate-limit:ip:192.168.1.100:payment",
		"rate-limit:ip:192.168.1.100:default"})
	require.Equal(w.t, "0 of 10 left, as if never used in 60000 ms",
		rdb.Get(w.t.Context(), "rate-limit:ip:192.168.1.100:login").Val())
	require.NoError(w.t, rdb.Do(w.t.Context(), "RL.POLICY", "DISABLE", "login").Err())
	for range 20 {
		a, err := w.send(from(ip, "POST", websiteLogin))
		require.NoError(w.t, err)
		require.Equal(w.t, 401, a.status, "no limit for logins")
	}
	require.NoError(w.t, rdb.Do(w.t.Context(), "RL.POLICY", "ENABLE", "login").Err())
	w.refuses("login", 60, from(ip, "POST", websiteLogin))
}

// counts checks that a path counts as a login in every spelling, and for every served page.
func (w *website) counts(ip string, left int, paths ...string) {
	w.t.Helper()
	for _, path := range paths {
		a, err := w.send(from(ip, "POST", path))
		require.NoError(w.t, err)
		require.Equal(w.t, strconv.Itoa(left), a.remaining, path)
		left--
	}
}

// users checks X-Real-IP without X-Forwarded-For, and that the user takes precedence over the address.
func (w *website) users() {
	w.says("200 4", websiteRequest{"POST", "/recovery", []string{"X-Real-IP", "192.0.2.9"}})
	w.says("200 3", from("192.0.2.9", "POST", "/recovery"))
	w.says("200 4", websiteRequest{"POST", "/recovery", []string{"X-Real-IP", "192.0.2.9", "X-User-Id", websiteUserID}})
	w.says("200 3", websiteRequest{"POST", "/recovery", []string{"X-Real-IP", "192.0.2.8", "X-User-Id", websiteUserID}})
}
