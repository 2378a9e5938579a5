package weirproc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirbin"
)

// Wait bounds every wait of a test. No result depends on how much of it is used.
const Wait = 30 * time.Second

// binary is the path of weir while Main runs.
var binary string

// Main builds weir and runs the tests of a package. A package that starts servers calls it from TestMain, and exits
// with its result.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weirproc")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary, err = weirbin.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Server is a process of weir. Its addresses stay the same after a restart.
type Server struct {
	Addr string // host:port for Redis clients
	HTTP string // host:port of the HTTP side

	t    *testing.T
	args []string
	cmd  *exec.Cmd
	log  *serverLog
}

// Start starts a server on free ports, without a data directory unless args name one. It
// ends with the test.
func Start(t *testing.T, args ...string) *Server {
	t.Helper()
	addrs := freeport.Addrs(t, 2)
	s := New(t, addrs[0], addrs[1], append([]string{"--data-dir", ""}, args...)...)
	s.Start()
	return s
}

// New returns a server that is still to be started, at these addresses. It ends with the test.
func New(t *testing.T, addr, http string, args ...string) *Server {
	s := &Server{t: t, Addr: addr, HTTP: http, args: args}
	t.Cleanup(s.Kill)
	return s
}

// Start starts the process, for the first time or after Kill, and waits until it accepts clients.
func (s *Server) Start() {
	s.t.Helper()
	usual := []string{"serve", "--listen", s.Addr, "--http", s.HTTP, "--log-format", "json"}
	s.cmd = exec.Command(binary, append(usual, s.args...)...)
	stderr, err := s.cmd.StderrPipe()
	require.NoError(s.t, err)
	s.log = newServerLog()
	require.NoError(s.t, s.cmd.Start())
	go s.log.read(stderr)
	select {
	case <-s.log.ready:
	case <-s.log.ended:
		s.t.Fatalf("the server did not start:\n%s", s.log)
	case <-time.After(Wait):
		s.t.Fatalf("the server is not ready:\n%s", s.log)
	}
}

// Kill ends the process with SIGKILL. It does nothing if the process does not run.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.log.ended
	_ = s.cmd.Wait()
	s.cmd = nil
	if s.t.Failed() {
		s.t.Logf("weir on %s said:\n%s", s.Addr, s.log)
	}
}

// Stop asks the process to end and waits for it. A process that does not end fails the test.
func (s *Server) Stop() {
	s.t.Helper()
	s.Signal(syscall.SIGTERM)
	select {
	case <-s.log.ended:
	case <-time.After(Wait):
		s.t.Errorf("the server does not stop:\n%s", s.log)
	}
	s.Kill()
}

// Signal sends the process a signal.
func (s *Server) Signal(signal os.Signal) { require.NoError(s.t, s.cmd.Process.Signal(signal)) }

// Command returns another command of the program, such as cluster status, to be run.
func Command(args ...string) *exec.Cmd { return exec.Command(binary, args...) }

// Running reports whether the process has been started and not killed.
func (s *Server) Running() bool { return s.cmd != nil }

// Log returns what the server has logged since its last Start.
func (s *Server) Log() string { return s.log.String() }

// Redis returns a client that ends with the test.
func (s *Server) Redis() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// serverLog collects what a server logs.
type serverLog struct {
	ready chan struct{} // a token, once the server accepts clients
	ended chan struct{} // closed when the process has closed its log

	mu    sync.Mutex
	lines []string
}

func newServerLog() *serverLog {
	return &serverLog{ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (l *serverLog) read(r io.Reader) {
	defer close(l.ended)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		l.mu.Lock()
		l.lines = append(l.lines, lines.Text())
		l.mu.Unlock()
		var entry struct{ Msg string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && Accepts(entry.Msg) {
			select {
			case l.ready <- struct{}{}:
			default: // a node of a cluster logs both messages
			}
		}
	}
}

// Accepts reports whether a message of the log says that clients are accepted.
func Accepts(msg string) bool { return msg == "ready" || msg == "accepting clients" }

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
