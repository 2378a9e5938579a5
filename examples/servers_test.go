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

	"github.com/weir-project/weir/internal/weirtest"
)

// TestNetHTTP runs the example in Go.
func TestNetHTTP(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "nethttp")
	out, err := exec.Command("go", "build", "-o", binary, "./nethttp").CombinedOutput()
	require.NoError(t, err, "%s", out)
	serve(t, "", []string{binary})
}

// needExamples skips a test that installs what it needs from a registry of packages.
func needExamples(t *testing.T) {
	if os.Getenv("WEIRTEST_EXAMPLES") == "" {
		t.Skip("SKIPPED: examples in other languages run with WEIRTEST_EXAMPLES=1 (make test-examples)")
	}
}

func TestExpress(t *testing.T) {
	needExamples(t)
	need(t, "on Debian: apt install nodejs npm", "node", "npm")
	serve(t, "express", []string{"node", "server.js"}, []string{"npm", "install", "--no-audit", "--no-fund", "--silent"})
}

// TestExpressClients needs no Express.
func TestExpressClients(t *testing.T) {
	need(t, "on Debian: apt install nodejs", "node")
	tellsClients(t, "express", "node", "--eval",
		`import("./limit.js").then((m) => process.argv.slice(1).forEach((ip) => console.log(m.clientOf({ ip }))))`)
}

func TestFastAPI(t *testing.T) {
	needExamples(t)
	need(t, "on Debian: apt install python3-venv", "python3")
	dir := serve(t, "fastapi", []string{"venv/bin/python", "app.py"},
		[]string{"python3", "-m", "venv", "venv"},
		[]string{"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", "requirements.txt"})
	tellsClients(t, dir, "venv/bin/python", "-c", `import sys, limit; from types import SimpleNamespace as N
for host in sys.argv[1:]: print(limit.client_of(N(client=N(host=host))))`)
}

func TestSpring(t *testing.T) {
	needExamples(t)
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	serve(t, "spring", []string{"java", "-jar", "target/example.jar"}, []string{"mvn", "--quiet", "--batch-mode", "package"})
}

// serve installs an example in a copy of its directory, which it returns, starts it before
// weir, and hammers it. An install that fails, for want of a network perhaps, skips, but
// never in CI.
func serve(t *testing.T, example string, argv []string, install ...[]string) (dir string) {
	s, addr := startWeir(t), freeAddr(t)
	if example != "" {
		dir = copied(t, example, nil)
	}
	for _, step := range install {
		cmd := exec.CommandContext(t.Context(), step[0], step[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && os.Getenv("CI") == "" {
			t.Skipf("SKIPPED: %s cannot be installed: %q: %v\n%s", example, step, err, out)
		}
		require.NoError(t, err, "%q: %s", step, out)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	// On a busy machine an answer may take longer than the examples would wait for it.
	cmd.Env = append(os.Environ(), "WEIR="+s.Addr, "LISTEN="+addr, "TIMEOUT_MS=10000")
	s.Stop()
	run(t, cmd, addr)
	closed(t, addr)
	s.Start()
	early := visitor(t, "127.0.0.10")
	require.Eventually(t, func() bool {
		res, _ := get(t, early, addr)
		return res.StatusCode == http.StatusOK
	}, weirtest.Wait, 20*time.Millisecond, "it does not find weir")
	hammer(t, addr)
	another(t, addr)
	s.Stop()
	closed(t, addr)
	return dir
}

// tellsClients checks whom an example, which a program has of its arguments, takes some
// addresses for: of IPv6 a /64 is one client.
func tellsClients(t *testing.T, dir string, argv ...string) {
	clients := [][2]string{
		{"192.0.2.7", "192.0.2.7"}, {"::ffff:192.0.2.7", "192.0.2.7"}, {"::1", "::/64"}, {"2001:db8::1", "2001:db8::/64"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"}, {"2001:db8:1:2::6", "2001:db8:1:2::/64"}, {"fe80::1%eth0", "fe80::/64"},
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
