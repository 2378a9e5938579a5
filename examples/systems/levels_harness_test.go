package systems

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// levelsDir returns a copy of the directory levels, compiled.
func levelsDir(t *testing.T) string {
	t.Helper()
	need(t, "on Debian: apt install nodejs npm", "node", "npm")
	dir := t.TempDir()
	for _, pattern := range []string{"*.json", "src/*.ts"} {
		files, err := filepath.Glob(filepath.Join("levels", pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			to := filepath.Join(dir, strings.TrimPrefix(file, "levels"))
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			require.NoError(t, os.WriteFile(to, text, 0o644))
		}
	}
	for _, step := range []string{"npm install --no-audit --no-fund", "npm run build"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", step)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			if os.Getenv("CI") == "" && strings.HasPrefix(step, "npm install") {
				t.Skipf("SKIPPED: %q: %v\n%s", step, err, out)
			}
			t.Fatalf("%q: %v\n%s", step, err, out)
		}
	}
	return dir
}

// nodeProcess is a program of Node whose output the test reads line by line.
type nodeProcess struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func startNode(t *testing.T, dir, weir string, argv ...string) *nodeProcess {
	t.Helper()
	cmd := exec.Command("node", argv...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "WEIR="+weir, "LISTEN=127.0.0.1:0", "TIMEOUT_MS=20000")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &nodeProcess{t, in, bufio.NewScanner(out)}
}

func (p *nodeProcess) line() string {
	p.t.Helper()
	require.True(p.t, p.out.Scan(), "the program ended")
	return p.out.Text()
}

// console is a program that evaluates each line of its input with the classes of the system, and prints the result as
// JSON.
const console = `
import { createInterface } from 'node:readline';
const all = await Promise.all(['weir', 'token-bucket', 'sliding-window', 'multi-level', 'redis-limiter'].map((f) => import('./dist/' + f + '.js')));
Object.assign(globalThis, ...all);
globalThis.weir = connect(process.env.WEIR, Number(process.env.TIMEOUT_MS));
for await (const line of createInterface({ input: process.stdin })) {
  let value;
  try { value = (await eval(line)) ?? null; } catch (err) { value = 'failed: ' + err.message; }
  console.log(JSON.stringify(value));
}`

func startConsole(t *testing.T, dir, weir string) *nodeProcess {
	return startNode(t, dir, weir, "--input-type=module", "--eval", console)
}

func (p *nodeProcess) eval(line string) string {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, line)
	require.NoError(p.t, err)
	return p.line()
}

func (p *nodeProcess) says(want, line string) {
	p.t.Helper()
	require.Equal(p.t, want, p.eval(line), line)
}

// visit sends a request from an address of this machine, and of a user unless user is empty.
func visit(t *testing.T, url, from, user string) (*http.Response, string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if user != "" {
		req.Header.Set("X-User", user)
	}
	res, err := (&http.Client{Transport: transport, Timeout: weirproc.Wait}).Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}
