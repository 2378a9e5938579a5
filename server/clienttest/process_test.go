package clienttest

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirproc"
)

// testWait bounds the waits of a test. No result depends on how much of it is used.
const testWait = weirproc.Wait

const password = "open sesame"

func TestMain(m *testing.M) { os.Exit(weirproc.Main(m)) }

// weir is a server process. A warning or an error in its log fails the test, unless it is excused.
type weir struct {
	*weirproc.Server
	t       *testing.T
	addr    string                 // host:port, the same after a restart
	excused func(line string) bool // whether this line may be in the log
}

// newWeir returns a server without an HTTP port, which the caller has to start. It ends with the test. The test fails
// if the log has a line that is neither information nor excused.
func newWeir(t *testing.T, addr string, excused func(line string) bool, args ...string) *weir {
	w := &weir{Server: weirproc.New(t, addr, "", args...), t: t, addr: addr, excused: excused}
	t.Cleanup(w.kill)
	return w
}

// startWeir starts a server with a test clock on a free port.
func startWeir(t *testing.T, args ...string) *weir {
	t.Helper()
	expected := func(line string) bool { // the clients also send what weir refuses
		return strings.Contains(line, "without a data directory") ||
			strings.Contains(line, "because it does not support it")
	}
	w := newWeir(t, freeport.Addrs(t, 1)[0], expected,
		append([]string{"--data-dir", "", "--test-clock", "--blacklist-key", "rl:blacklist:ip"}, args...)...)
	w.Start()
	return w
}

// kill ends the process as a crash does: clients only see their connections end.
func (w *weir) kill() {
	if w.Running() {
		w.Kill()
		require.Empty(w.t, w.complaints(), "the server's log")
	}
}

// stop ends the process as an operator does.
func (w *weir) stop() {
	w.t.Helper()
	w.Stop()
	require.Empty(w.t, w.complaints(), "the server's log")
}

func (w *weir) restart() {
	w.t.Helper()
	w.kill()
	w.Start()
}

func (w *weir) port() string {
	_, port, err := net.SplitHostPort(w.addr)
	require.NoError(w.t, err)
	return port
}

// complaints returns the lines of the log that are neither information nor excused.
func (w *weir) complaints() (found []string) {
	for line := range strings.Lines(w.Log()) {
		if !strings.Contains(line, `"level":"INFO"`) && !w.excused(line) {
			found = append(found, line)
		}
	}
	return found
}
