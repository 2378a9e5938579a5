package clienttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testWait bounds what a test waits for; nothing passes or fails by how much of
// it is used.
const testWait = 30 * time.Second

const password = "open sesame"

// weirBinary is built once, by TestMain.
var weirBinary string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-clienttest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	weirBinary = filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-o", weirBinary, "github.com/weir-project/weir/cmd/weir")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does it: what is compiled serves both
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build weir: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// weir is a server process that can be killed and started again in its place.
type weir struct {
	t       *testing.T
	addr    string // host:port, the same in every life
	args    []string
	excused func(line string) bool // whether it may complain so
	cmd     *exec.Cmd
	log     *serverLog
}

// startWeir starts a server with a test clock on a free port. It ends with the
// test, which fails when the server had anything to complain about.
func startWeir(t *testing.T, args ...string) *weir {
	t.Helper()
	w := &weir{t: t, addr: "127.0.0.1:0", args: append([]string{"--data-dir", "", "--test-clock", "--blacklist-key", "rl:blacklist:ip"}, args...)}
	w.excused = func(line string) bool { return strings.Contains(line, "without a data directory") }
	w.start()
	t.Cleanup(w.kill)
	return w
}

func (w *weir) start() {
	w.t.Helper()
	args := append([]string{"serve", "--listen", w.addr, "--http", "", "--log-format", "json"}, w.args...)
	w.cmd = exec.Command(weirBinary, args...)
	stderr, err := w.cmd.StderrPipe()
	require.NoError(w.t, err)
	w.log = newServerLog()
	require.NoError(w.t, w.cmd.Start())
	go w.log.read(stderr)
	select {
	case w.addr = <-w.log.ready:
	case <-w.log.ended:
		w.t.Fatalf("the server did not start:\n%s", w.log)
	case <-time.After(testWait):
		w.t.Fatalf("the server is not ready:\n%s", w.log)
	}
}

// kill ends the process as a crash would: clients hear nothing but the end of
// their connections.
func (w *weir) kill() {
	if w.cmd == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	<-w.log.ended
	_ = w.cmd.Wait()
	w.cmd = nil
	require.Empty(w.t, w.log.complaints(w.excused), "the server's log")
}

func (w *weir) restart() {
	w.t.Helper()
	w.kill()
	w.start()
}

func (w *weir) port() string {
	_, port, err := net.SplitHostPort(w.addr)
	require.NoError(w.t, err)
	return port
}

// serverLog collects what the server logs.
type serverLog struct {
	ready chan string   // the address, once
	ended chan struct{} // closed when the process has closed its log

	mu    sync.Mutex
	lines []string
}

func newServerLog() *serverLog {
	return &serverLog{ready: make(chan string, 1), ended: make(chan struct{})}
}

func (l *serverLog) read(r io.Reader) {
	defer close(l.ended)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		l.mu.Lock()
		l.lines = append(l.lines, lines.Text())
		l.mu.Unlock()
		var entry struct{ Msg, Listen string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && accepts(entry.Msg) {
			select {
			case l.ready <- entry.Listen:
			default: // a node of a cluster says it twice: when it accepts clients and when it is ready
			}
		}
	}
}

// accepts says whether a line of the log tells that clients are accepted.
func accepts(msg string) bool { return msg == "ready" || msg == "accepting clients" }

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// complaints are the lines that are not information, but for those excused.
func (l *serverLog) complaints(excused func(line string) bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if !strings.Contains(line, `"level":"INFO"`) && !excused(line) {
			found = append(found, line)
		}
	}
	return found
}
