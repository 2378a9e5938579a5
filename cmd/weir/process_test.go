package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirbin"
)

// patience bounds every wait for a process. It is so long that no test fails on a busy machine.
const patience = time.Minute

// binary is the path of the weir binary under test.
var binary string

// The flags by which make writes documents from the command line.
var (
	update = flag.Bool("update", false, "write docs/configuration.md")
	manDir = flag.String("man", "", "write man pages into this directory")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *update || *manDir != "" {
		os.Exit(m.Run()) // needs no binary
	}
	os.Exit(runWithBinary(m))
}

func runWithBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-test")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it too
		panic(err)
	}
	if binary, err = weirbin.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// process is a running weir.
type process struct {
	t         *testing.T
	cmd       *exec.Cmd
	addr, web string
	ended     chan struct{}
	err       error // of Wait; valid once ended

	mu  sync.Mutex
	log bytes.Buffer
}

// launchCommand starts weir serve on free ports through a command that executes weir. It does not wait until the
// server is ready.
func launchCommand(t *testing.T, ready chan<- map[string]any, cmd *exec.Cmd, args ...string) *process {
	t.Helper()
	cmd.Args = append(append(cmd.Args, "serve", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--log-format=json"),
		args...)
	p := &process{t: t, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Dir = t.TempDir()
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			p.mu.Lock()
			p.log.Write(append(lines.Bytes(), '\n'))
			p.mu.Unlock()
			var line map[string]any
			if json.Unmarshal(lines.Bytes(), &line) == nil && accepts(line["msg"]) {
				select {
				case ready <- line:
				default: // a node of a cluster logs two lines: when it accepts clients, and when it is ready
				}
			}
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// start starts weir serve and waits for it to be ready.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(binary), args...)
}

// accepts reports whether a log message says that clients are accepted.
func accepts(msg any) bool { return msg == "ready" || msg == "accepting clients" }

// startCommand is start for a command that executes weir with more arguments.
func startCommand(t *testing.T, cmd *exec.Cmd, args ...string) *process {
	t.Helper()
	ready := make(chan map[string]any, 1)
	p := launchCommand(t, ready, cmd, args...)
	select {
	case line := <-ready:
		p.addr = line["listen"].(string)
		p.web, _ = line["http"].(string)
		require.Contains(t, line["connect"], "redis-cli -p "+p.addr[strings.LastIndexByte(p.addr, ':')+1:])
	case <-p.ended:
		t.Fatalf("weir ended instead of serving:\n%s", p.output())
	case <-time.After(patience):
		t.Fatalf("weir does not become ready:\n%s", p.output())
	}
	return p
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// wait waits for the process to end and returns its exit code, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("weir does not end:\n%s", p.output())
		return 0
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// stop ends the process cleanly.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	require.Zero(p.t, p.wait(), p.output())
}

func (p *process) dial() redis.Conn {
	p.t.Helper()
	c, err := redis.Dial("tcp", p.addr)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// do sends a command. It repeats one that did nothing because a cluster elects its leader.
func (p *process) do(command string, args ...any) (reply any) {
	p.t.Helper()
	conn := p.dial()
	var err error
	require.Eventually(p.t, func() bool {
		reply, err = conn.Do(command, args...)
		return err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") &&
			!strings.HasPrefix(err.Error(), "CLUSTERDOWN")
	}, patience, 10*time.Millisecond)
	require.NoError(p.t, err)
	return reply
}

// five sends a decision and returns its numbers.
func (p *process) five(command string, args ...any) []int64 {
	p.t.Helper()
	numbers, err := redis.Int64s(p.do(command, args...), nil)
	require.NoError(p.t, err)
	return numbers
}

// refusal runs weir, expects it to end with an error, and returns its output.
func refusal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	require.Error(t, err, out.String())
	require.Positive(t, cmd.ProcessState.ExitCode(), out.String())
	require.NotContains(t, out.String(), "goroutine ", "the output must not contain a stack trace")
	return out.String()
}

func serveCommand(args ...string) *exec.Cmd {
	return exec.CommandContext(context.Background(), binary,
		append([]string{"serve", "--listen=127.0.0.1:0", "--http="}, args...)...)
}
