package clienttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// language is a program that calls the clients of one language. Its arguments are the client, the task, the file of
// vectors, host and port, and for the task password the right password.
//
//	restart   run the vectors, print READY, wait for a line, run them again
//	password  run them with the password; be refused with a wrong one and with none
//	database  run them in database 1, which a URL names where the client takes one
//
// The program prints DONE at the end and exits with status 0. It writes every difference, and every line that the
// client logs, to standard error.
type language struct {
	name    string     // of the language, and of the directory with the program
	tools   []string   // programs that must be installed
	install [][]string // commands that build the program, in a copy of the directory
	program []string   // the command that runs the program, in the same copy
	clients []string
	cluster []string // the command of another program, for the cluster modes: see clusterforeign_test.go
	kinds   []clientKind
}

var languages = []language{
	{
		name:  "python",
		tools: []string{"python3"},
		install: [][]string{
			{"python3", "-m", "venv", "venv"},
			{"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", "requirements.txt"},
		},
		program: []string{"venv/bin/python", "-W", "default", "speak.py"},
		clients: []string{"redis-py", "redis-py-resp2"},
		cluster: []string{"venv/bin/python", "-W", "default", "cluster.py"},
		kinds: []clientKind{{name: "redis-py-cluster", learns: true, resends: true},
			{name: "redis-py-sentinel", resends: true, sentinel: true}},
	},
	{
		name:    "node",
		tools:   []string{"node", "npm"},
		install: [][]string{{"npm", "ci", "--no-audit", "--no-fund"}},
		program: []string{"node", "speak.mjs"},
		clients: []string{"node-redis", "ioredis", "ioredis-5"},
		cluster: []string{"node", "cluster.mjs"},
		kinds: []clientKind{{name: "node-redis-cluster"},
			{name: "ioredis-cluster", learns: true, resends: true, keyless: true},
			{name: "ioredis-5-cluster", learns: true, resends: true, keyless: true},
			{name: "node-redis-sentinel", resends: true, sentinel: true, hears: true},
			{name: "ioredis-sentinel", resends: true, sentinel: true, hears: true}},
	},
	{
		name:    "java",
		tools:   []string{"java", "javac", "mvn"},
		install: [][]string{{"mvn", "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies"}},
		program: []string{"java", "-cp", "target/classes:target/dependency/*",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "Speak"},
		clients: []string{"jedis", "lettuce"},
		cluster: []string{"java", "-cp", "target/classes:target/dependency/*",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "Cluster"},
		kinds: []clientKind{{name: "lettuce-cluster", learns: true, resends: true},
			{name: "jedis-cluster", learns: true, resends: true},
			{name: "lettuce-sentinel", resends: true, sentinel: true},
			{name: "jedis-sentinel", resends: true, sentinel: true, hears: true}},
	},
	{
		name:    "rust",
		tools:   []string{"cargo"},
		install: [][]string{{"cargo", "build", "--quiet", "--locked"}},
		program: []string{"target/debug/speak"},
		clients: []string{"redis-rs", "redis-rs-resp3"},
		cluster: []string{"target/debug/speak"},
		kinds:   []clientKind{{name: "redis-rs-cluster", resends: true, oneError: true}},
	},
}

// TestForeign has a subtest for each client, such as TestForeign/node/ioredis.
func TestForeign(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: clients of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	t.Parallel() // as all below: each test mostly waits for elections and disks
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			dir := l.prepare(t)
			for _, client := range l.clients {
				t.Run(client, func(t *testing.T) {
					p := program{dir: dir, argv: append(l.program[:len(l.program):len(l.program)], client)}
					t.Run("Restart", p.testRestart)
					t.Run("Password", p.testPassword)
					t.Run("Database", p.testDatabase)
					t.Run("SeesDifferences", p.testSeesDifferences)
				})
			}
			for _, kind := range l.kinds {
				t.Run(kind.name, func(t *testing.T) {
					t.Parallel()
					testClusterClient(t, l.inCluster(dir, kind))
					if !kind.sentinel {
						testTier(t, l.inCluster(dir, kind))
					}
				})
			}
		})
	}
}

// prepare installs the program and returns its directory. The test is skipped if the toolchain is missing. It is also
// skipped if the installation fails, for instance without a network. In CI such a failure fails the test.
func (l language) prepare(t *testing.T) string {
	t.Helper()
	for _, name := range l.tools {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED: the %s clients need %s, which is not on the PATH", l.name, name)
		}
	}
	dir, err := filepath.Abs(filepath.Join(".cache", l.name))
	require.NoError(t, err)
	require.NoError(t, copyFiles(l.name, dir))
	for _, argv := range l.install {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		t.Skipf("SKIPPED: the %s clients cannot be installed: %q: %v\n%s", l.name, argv, err, out)
	}
	return dir
}

// copyFiles copies the files of one directory tree into another. Other files there remain.
func copyFiles(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, inside)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, text) {
			return nil // an unchanged modification time lets the build tool skip the file
		}
		return os.WriteFile(target, text, 0o644)
	})
}

// program is an installed program and the client that it uses.
type program struct {
	dir  string
	argv []string
}

// programWait bounds the run of a program, because some clients try to connect for ever. It is longer than several
// clusterWaits.
const programWait = 8 * time.Minute

// conversation is a running program, with its input and output.
type conversation struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr logtest.Buffer
	// excused reports whether a line on standard error is expected; nil: none is.
	excused func(line string) bool
}

func (p program) start(t *testing.T, doing, vectors string, server *weir, args ...string) *conversation {
	t.Helper()
	vectors, err := filepath.Abs(vectors)
	require.NoError(t, err)
	return p.launch(t, append([]string{doing, vectors, "127.0.0.1", server.port()}, args...))
}

func (p program) launch(t *testing.T, args []string) *conversation {
	t.Helper()
	argv := append(p.argv[:len(p.argv):len(p.argv)], args...)
	ctx, cancel := context.WithTimeout(t.Context(), programWait)
	t.Cleanup(cancel)
	c := &conversation{t: t, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	c.cmd.Dir = p.dir
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		// these variables make the runtimes print lines of their own
		return strings.HasPrefix(v, "JAVA_TOOL_OPTIONS=") || strings.HasPrefix(v, "NODE_OPTIONS=")
	})
	c.cmd.Stderr = &c.stderr
	c.cmd.WaitDelay = testWait
	var err error
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.stdout = bufio.NewScanner(stdout)
	require.NoError(t, c.cmd.Start())
	return c
}

// hear waits until the program prints the given line. Any other line fails the test.
func (c *conversation) hear(line string) {
	c.t.Helper()
	if !c.stdout.Scan() {
		_ = c.cmd.Wait()
		c.t.Fatalf("the program ended before it said %s:\n%s", line, &c.stderr)
	}
	require.Equal(c.t, line, c.stdout.Text())
}

// end waits until the program prints DONE and exits with status 0. Any line on standard error that is not excused fails
// the test.
func (c *conversation) end() {
	c.t.Helper()
	c.hear("DONE")
	assert.NoError(c.t, c.cmd.Wait())
	for line := range strings.Lines(c.stderr.String()) {
		if c.excused == nil || !c.excused(line) {
			assert.Fail(c.t, "the client's log must be empty", c.stderr.String())
			return
		}
	}
}

func (p program) testRestart(t *testing.T) {
	server := startWeir(t)
	c := p.start(t, "restart", vectorsFile, server)
	c.hear("READY")
	c.excused = func(line string) bool { // a client may try to connect before a busy machine has restarted the server
		return strings.Contains(line, "Cannot reconnect") && strings.Contains(line, "Connection refused")
	}
	server.restart()
	_, err := io.WriteString(c.stdin, "restarted\n")
	require.NoError(t, err)
	c.end()
}

func (p program) testPassword(t *testing.T) {
	w := startWeir(t, "--requirepass", password)
	// Some clients try a wrong password ten times, and the server logs that.
	usual := w.excused
	w.excused = func(line string) bool { return usual(line) || strings.Contains(line, "too many failed logins") }
	p.start(t, "password", vectorsFile, w, password).end()
}

// ofOneDatabase writes the vectors without those on the set of blocked addresses, which is in database 0.
func ofOneDatabase(t *testing.T) (file string) {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(text, &all))
	all["vectors"] = slices.DeleteFunc(all["vectors"].([]any), func(v any) bool {
		send := fmt.Sprint(v.(map[string]any)["send"])
		return strings.Contains(send, "rl:blacklist:ip") || strings.Contains(send, "192.0.2.66")
	})
	text, err = json.Marshal(all)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), vectorsFile)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// testDatabase checks that the program gets the same answers in database 1, and leaves database 0 as it is.
func (p program) testDatabase(t *testing.T) {
	w := startWeir(t)
	ask := func(args ...string) string {
		t.Helper()
		reply, err := w.ask(args...)
		require.NoError(t, err)
		return fmt.Sprintf("%s", reply)
	}
	ask("SET", "of zero", "1")
	p.start(t, "database", ofOneDatabase(t), w).end()
	require.Contains(t, ask("INFO", "keyspace"), "db0:keys=1,")
	require.Regexp(t, `db1:keys=[1-9]`, ask("INFO", "keyspace"))
}

// testSeesDifferences gives the program vectors with one wrong value. The program must report each of them.
func (p program) testSeesDifferences(t *testing.T) {
	for _, wrong := range []struct{ from, to, complaint string }{
		{`[1, 99, 0, 100, 100]`, `[1, 98, 0, 100, 100]`, "answered"},
		{`30000, 2, "a"]`, `30000, 2, "b"]`, "answered"},
		{`"rule": "10/s 100"`, `"rule": "10/s 101"`, "answered"},
		{`"error": "not 'fast'"`, `"error": "not 'slow'"`, "answered"},
		{`"admitted": 300`, `"admitted": 301`, "300 of 1000 admitted, not"},
		{`[0, 3, 60000, 120000, 5]`, `[0, 3, 60000, 120000, 6]`, "answered"},
	} {
		text, err := os.ReadFile(vectorsFile)
		require.NoError(t, err)
		require.Contains(t, string(text), wrong.from)
		file := filepath.Join(t.TempDir(), vectorsFile)
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), wrong.from, wrong.to, 1)), 0o600))

		c := p.start(t, "restart", file, startWeir(t))
		if !assert.False(t, c.stdout.Scan(), "%s is taken for right", wrong.to) {
			_ = c.cmd.Cancel()
		}
		assert.Error(t, c.cmd.Wait())
		assert.Contains(t, c.stderr.String(), wrong.complaint)
	}
}
