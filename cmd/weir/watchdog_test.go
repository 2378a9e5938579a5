package main

import (
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/freeport"
)

// systemd is the receiver at NOTIFY_SOCKET.
type systemd struct {
	t      *testing.T
	path   string
	socket *net.UnixConn
}

func startSystemd(t *testing.T) *systemd {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	return &systemd{t, path, socket}
}

// hear returns the next message, or "" if none arrives in time.
func (s *systemd) hear(wait time.Duration) string {
	s.t.Helper()
	require.NoError(s.t, s.socket.SetReadDeadline(time.Now().Add(wait)))
	b := make([]byte, 100)
	n, err := s.socket.Read(b)
	if err != nil {
		require.ErrorIs(s.t, err, os.ErrDeadlineExceeded)
	}
	return string(b[:n])
}

// TestWatchdog checks that a responsive server reports to systemd repeatedly. A halted server does not, and resumes
// when it runs again.
func TestWatchdog(t *testing.T) {
	s := startSystemd(t)
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path, "WATCHDOG_USEC=600000")
	p := startCommand(t, cmd, "--data-dir=")
	require.Equal(t, nowReady, s.hear(patience))
	for range 3 {
		require.Equal(t, nowAlive, s.hear(patience))
	}
	p.stop()
	for {
		if word := s.hear(patience); word != nowAlive {
			require.Equal(t, nowStopping, word)
			break
		}
	}
	require.Empty(t, s.hear(time.Millisecond), "no message may follow the end")
}

// stuckNode does not answer until gone is closed.
type stuckNode struct{ gone chan struct{} }

func (n stuckNode) Inspect([]byte) (engine.Info, bool) {
	<-n.gone
	return engine.Info{}, false
}

// TestWatchdogAsks checks that the watchdog reports nothing if the port or the node behind it does not answer.
func TestWatchdogAsks(t *testing.T) {
	free := make(chan struct{})
	close(free)
	p := start(t, "--data-dir=")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects and never answers
	require.NoError(t, err)
	defer silent.Close()
	stuck := stuckNode{make(chan struct{})}
	defer close(stuck.gone)
	for _, c := range []struct {
		what, addr string
		node       keyLooker
		wait       time.Duration
		alive      bool
	}{
		{"all is well", p.addr, stuckNode{free}, patience, true},
		{"nobody answers", silent.Addr().String(), stuckNode{free}, 10 * time.Millisecond, false},
		{"nobody is there", freeport.Addr(t), stuckNode{free}, patience, false},
		{"the limiter is stuck", p.addr, stuck, 10 * time.Millisecond, false},
	} {
		err := (&watchdog{addr: c.addr, node: c.node, every: c.wait, log: slog.New(slog.DiscardHandler)}).ask()
		if c.alive {
			require.NoError(t, err, c.what)
		} else {
			require.ErrorIs(t, err, errNoAnswer, c.what)
		}
	}
	halt(t, p.cmd.Process.Pid)
	require.Error(t, ping(p.addr, 50*time.Millisecond),
		"a halted process accepts connections but must not count as alive")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	require.NoError(t, ping(p.addr, patience))
}

// halt stops a child, and waits until all its threads have stopped. The signal returns before they do.
func halt(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, unix.Kill(pid, unix.SIGSTOP))
	require.NoError(t, unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil))
}

// TestWatchdogTakesAnyAnswer checks that a port counts as alive if it requires TLS or a password, or if it is full.
func TestWatchdogTakesAnyAnswer(t *testing.T) {
	own := certtest.NewCA(t, "ca").Issue("own", nil)
	p := start(t, "--tls-listen=127.0.0.1:0", "--tls-cert-file", own.Cert, "--tls-key-file", own.Key, "--requirepass=x",
		"--max-clients=1", "--data-dir=")
	require.NoError(t, ping(p.said("tls_listen"), patience))
	require.NoError(t, ping(p.addr, patience))
	held := p.dial()
	_, _ = held.Do("PING")
	require.NoError(t, ping(p.addr, patience))
}

func TestWatchdogIsAskedFor(t *testing.T) {
	for given, want := range map[string]time.Duration{
		"": 0, "x": 0, "1000": 0, "-1": 0, "30000000": 10 * time.Second, "30000000 1": 0,
	} {
		env := append(strings.Fields(given), "", "")
		every := watchdogEvery(func(name string) string {
			return map[string]string{"WATCHDOG_USEC": env[0], "WATCHDOG_PID": env[1]}[name]
		})
		require.Equal(t, want, every, given)
	}
}
