package systems

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// publicAPIPython installs the packages of the service in Python, and returns its interpreter. If the install fails,
// for example without a network, it skips the test, but never in CI.
func publicAPIPython(t *testing.T) (python string) {
	t.Helper()
	need(t, "on Debian: apt install python3-venv", "python3")
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	python = filepath.Join(t.TempDir(), "venv", "bin", "python")
	for _, argv := range [][]string{
		{"python3", "-m", "venv", filepath.Dir(filepath.Dir(python))},
		{python, "-m", "pip", "install", "--quiet", "--requirement", "public-api/requirements.txt"},
	} {
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if err != nil && os.Getenv("CI") == "" {
			t.Skipf("SKIPPED: the public API in Python cannot be installed: %q: %v\n%s", argv, err, out)
		}
		require.NoError(t, err, "%q: %s", argv, out)
	}
	return python
}

// TestPublicAPIInPython checks that the service in Python behaves like the service in Go, and its limiter class like
// the class of the document.
func TestPublicAPIInPython(t *testing.T) {
	python := publicAPIPython(t)
	t.Run("service", func(t *testing.T) { walkPublicAPI(t, python, "public-api/app.py") })
	t.Run("algorithms", func(t *testing.T) { walkPublicAPIAlgorithms(t, python, "public-api/app.py") })
	t.Run("class", func(t *testing.T) {
		weir := weirproc.Start(t, "--test-clock")
		cmd := exec.CommandContext(t.Context(), python, "-c", `import sys; from redis import Redis; from limiter import RedisRateLimiter
limiter = RedisRateLimiter(Redis.from_url("redis://" + sys.argv[1], decode_responses=True))
print(sum(limiter.is_allowed("client", 100, 60) for _ in range(15)), limiter.get_status("client", 100, 60))
print(sum(limiter.is_allowed("client", 100, 60) for _ in range(150)), limiter.get_status("client", 100, 60))`, weir.Addr)
		cmd.Dir = "public-api"
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "15 {'limit': 100, 'remaining': 85, 'used': 15}\n85 {'limit': 100, 'remaining': 0, "+
			"'used': 100}\n", string(out))
		ttl, err := weir.Redis().TTL(t.Context(), "ratelimit:client").Result()
		require.NoError(t, err)
		require.EqualValues(t, 60, ttl.Seconds(), "no limiter stays for ever")
	})
	t.Run("proxies", func(t *testing.T) { publicAPIProxies(t, python) })
	t.Run("settings", func(t *testing.T) {
		for want, env := range map[string]string{
			"RATE_LIMIT_WINDOW must be a whole number of at least 1, not ''": "RATE_LIMIT_DEFAULT=1000",
			"RATE_LIMIT_ENABLED must be true or false, not 'maybe'":          "RATE_LIMIT_ENABLED=maybe",
		} {
			cmd := exec.CommandContext(t.Context(), python, "public-api/app.py")
			cmd.Env = append(cmd.Environ(), env)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, want, strings.TrimSpace(string(out)))
		}
	})
}

// publicAPIProxies checks whose X-Forwarded-For the service in Python believes, and that no text in it reaches weir.
func publicAPIProxies(t *testing.T, python string) {
	for trusted, want := range map[string][]string{
		"192.0.2.0/24":           {"ip:127.0.0.1", "ip:127.0.0.1", "ip:127.0.0.1", "ip:127.0.0.1", "ip:127.0.0.1"},
		"127.0.0.0/8,10.0.0.0/8": {"ip:198.51.100.7", "ip:198.51.100.7", "ip:127.0.0.1", "ip:2001:db8:1:2::/64", "ip:198.51.100.7"},
	} {
		weir := weirproc.Start(t, "--test-clock", "--policies", publicAPIPolicies)
		api := startPublicAPI(t, weir.Addr, []string{python, "public-api/app.py"}, "TRUSTED_PROXIES="+trusted,
			"RATE_LIMIT_DEFAULT=1000", "RATE_LIMIT_WINDOW=3600")
		for i, header := range []string{"198.51.100.7", "203.0.113.9, 198.51.100.7, 10.0.0.1", strings.Repeat("x", 700),
			"2001:db8:1:2:3::4", "x,::ffff:198.51.100.7"} {
			res, body := api.ask("GET", "/api/users", "X-Forwarded-For", header)
			require.Equal(t, 200, res.StatusCode, body)
			left, err := weir.Redis().Do(t.Context(), "RL.CHECK", "ip", want[i], "COST", "0").Slice()
			require.NoError(t, err)
			require.Less(t, left[1], left[4], "%s must count as %s", header, want[i])
			require.NoError(t, weir.Redis().FlushAll(t.Context()).Err())
			require.NoError(t, weir.Redis().Do(t.Context(), "DEBUG", "CLOCK", "ADVANCE", "1").Err())
		}
	}
}
