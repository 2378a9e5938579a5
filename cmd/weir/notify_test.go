package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNotify checks that systemd is told when the server accepts clients, and when it stops.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: path})
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, socket.SetDeadline(time.Now().Add(patience)))
	hear := func() string {
		b := make([]byte, 100)
		n, err := socket.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path)
	p := startCommand(t, cmd)
	require.Equal(t, nowReady, hear())
	p.stop()
	require.Equal(t, nowStopping, hear())
}

// TestUnit checks that systemd accepts the unit, and that the unit restricts weir.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is missing (on Debian: apt install systemd)")
	}
	unit, err := os.ReadFile("../../packaging/weir.service")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "weir.service")
	here := strings.Replace(string(unit), "ExecStart=weir serve", "ExecStart="+binary+" serve", 1)
	require.NoError(t, os.WriteFile(path, []byte(here), 0o600))
	out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "weir.service:", "systemd must print no warning")
	// The scale ends at 10. systemd rates a value below 2 as OK, and most services as 9.
	out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
