package examples

import (
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestNetHTTP runs the example in Go.
func TestNetHTTP(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "nethttp")
	out, err := exec.Command("go", "build", "-o", binary, "./nethttp").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{"go run ./examples/nethttp"}, readmeOf(t, "nethttp").start)
	serve(t, "nethttp", []string{binary})
}

// needExamples skips a test that installs packages from a registry.
func needExamples(t *testing.T) {
	if os.Getenv("WEIRTEST_EXAMPLES") == "" {
		t.Skip("SKIPPED: examples in other languages run with WEIRTEST_EXAMPLES=1 (make test-examples)")
	}
}

func TestExpress(t *testing.T) {
	needExamples(t)
	need(t, "on Debian: apt install nodejs npm", "node", "npm")
	serve(t, "express", nil)
}

// TestExpressClients tests the example's client addresses. It needs no Express.
func TestExpressClients(t *testing.T) {
	need(t, "on Debian: apt install nodejs", "node")
	tellsClients(t, "express", "node", "--eval",
		`import("./limit.js").then((m) => process.argv.slice(1).forEach((ip) => console.log(m.clientOf({ ip }))))`)
}

func TestFastAPI(t *testing.T) {
	needExamples(t)
	need(t, "on Debian: apt install python3-venv", "python3")
	dir := serve(t, "fastapi", nil)
	tellsClients(t, dir, "venv/bin/python", "-c", `import sys, limit; from types import SimpleNamespace as N
for host in sys.argv[1:]: print(limit.client_of(N(client=N(host=host))))`)
}

func TestSpring(t *testing.T) {
	needExamples(t)
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	serve(t, "spring", nil)
}

// serve installs an example in a copy of its directory as its README says, starts it before weir, and runs hammer. It
// returns the copy. argv replaces the README's commands. If the install fails, for example without a network, the
// test is skipped, but never in CI.
func serve(t *testing.T, example string, argv []string) (dir string) {
	s, addr, page := startWeir(t), freeport.Addr(t), readmeOf(t, example)
	dir = copied(t, example, nil)
	var install []string
	if argv == nil {
		last := len(page.start) - 1
		install, argv = page.start[:last], strings.Fields(page.start[last])
	}
	for _, step := range install {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", step)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && os.Getenv("CI") == "" {
			t.Skipf("SKIPPED: %s cannot be installed: %q: %v\n%s", example, step, err, out)
		}
		require.NoError(t, err, "%q: %s", step, out)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	// On a busy machine an answer may take longer than the timeout of the examples.
	cmd.Env = append(os.Environ(), "WEIR="+s.Addr, "LISTEN="+addr, "TIMEOUT_MS=10000")
	s.Stop()
	log := run(t, cmd, addr)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "http://"+addr) },
		weirtest.Wait, 20*time.Millisecond,
		"it does not print where it listens")
	closed(t, addr)
	s.Start()
	early := visitor(t, "127.0.0.10")
	require.Eventually(t, func() bool {
		res, _ := get(t, early, addr)
		return res.StatusCode == http.StatusOK
	}, weirtest.Wait, 20*time.Millisecond, "it does not find weir")
	hammer(t, addr)
	another(t, addr)
	page.follow(t, s, addr)
	s.Stop()
	closed(t, addr)
	return dir
}

// tellsClients checks which client an example derives from some addresses. A program evaluates the example on its
// arguments. For IPv6 a /64 is one client.
func tellsClients(t *testing.T, dir string, argv ...string) {
	clients := [][2]string{
		{"192.0.2.7", "192.0.2.7"}, {"::ffff:192.0.2.7", "192.0.2.7"}, {"::1", "::/64"},
		{"2001:db8::1", "2001:db8::/64"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"}, {"2001:db8:1:2::6", "2001:db8:1:2::/64"},
		{"fe80::1%eth0", "fe80::/64"},
	}
	for _, c := range clients {
		argv = append(argv, c[0])
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	told := strings.Fields(string(out))
	require.Len(t, told, len(clients), "%s", out)
	for i, c := range clients {
		if prefix, err := netip.ParsePrefix(told[i]); err == nil {
			told[i] = prefix.String()
		}
		require.Equal(t, c[1], told[i], c[0])
	}
}
