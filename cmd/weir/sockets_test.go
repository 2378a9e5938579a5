package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/servertest"
)

// TestUnixSockets checks that each protocol answers at its Unix socket, also after a kill that left the files behind.
func TestUnixSockets(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	flags := []string{"--unix-socket=" + path("weir"), "--http-socket=" + path("http"), "--rls-socket=" + path("rls"),
		"--socket-mode=0600", "--http-check=open", "--data-dir=" + path("data")}
	p := start(t, flags...)
	p.signal(syscall.SIGKILL)
	p.wait()
	p = start(t, flags...)
	for _, name := range []string{"weir", "http", "rls"} {
		at, err := os.Lstat(path(name))
		require.NoError(t, err)
		require.Equal(t, os.ModeSocket|0o600, at.Mode(), name)
	}

	conn, err := redis.Dial("unix", path("weir"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Do("RL.POLICY", "SET", "p", "LIMIT", "FIXED", "FOREVER", "2")
	require.NoError(t, err)
	listed, err := redis.String(conn.Do("CLIENT", "LIST"))
	require.NoError(t, err)
	primaries, err := redis.Values(conn.Do("SENTINEL", "MASTERS"))
	require.NoError(t, err)
	require.Empty(t, primaries, "a socket is no address")
	require.Contains(t, listed, " addr="+path("weir")+":0 laddr="+path("weir"))

	toSocket := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path("http"))
	}
	web := http.Client{Transport: &http.Transport{DialContext: toSocket}}
	defer web.CloseIdleConnections()
	reply, err := web.Get("http://weir/check/p?key=u")
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, reply.Body)
	reply.Body.Close()
	require.Equal(t, http.StatusNoContent, reply.StatusCode)

	var envoys []*grpc.ClientConn
	for open := 1; open <= 2; open++ { // the clients of a socket have no addresses of their own
		conn, err := grpc.NewClient("unix:"+path("rls"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		_, err = servertest.Envoy{Conn: conn}.ShouldRateLimit(t.Context(), &rlspb.Request{})
		require.Equal(t, codes.InvalidArgument, status.Code(err), "the empty call must reach the service")
		require.EqualValues(t, open, p.metric("weir_rls_connections"))
		envoys = append(envoys, conn)
	}
	for i, conn := range envoys {
		require.NoError(t, conn.Close())
		left := float64(len(envoys) - 1 - i)
		require.Eventually(t, func() bool { return p.metric("weir_rls_connections") == left }, patience,
			time.Millisecond)
	}
	p.stop()
	for _, name := range []string{"weir", "http", "rls"} {
		require.NoFileExists(t, path(name))
	}
}

func TestRefusedSockets(t *testing.T) {
	dir := t.TempDir()
	file, taken := filepath.Join(dir, "file"), filepath.Join(dir, "taken")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	ln, err := net.Listen("unix", taken)
	require.NoError(t, err)
	defer ln.Close()
	for _, c := range []struct {
		says  string
		flags []string
	}{
		{"--unix-socket " + file + " exists and is no socket", []string{"--unix-socket=" + file}},
		{"--unix-socket: " + taken + " is in use by another process", []string{"--unix-socket=" + taken}},
		{"--unix-socket and --rls-socket are both " + taken,
			[]string{"--unix-socket=" + taken, "--rls-socket=" + taken}},
		{`--socket-mode must be an octal mode from 0600 to 0777 like 0660, not "0888"`,
			[]string{"--socket-mode=0888"}},
		{"--socket-mode must be an octal mode", []string{"--socket-mode=0444"}},
		{"no such file or directory", []string{"--http-socket=" + filepath.Join(dir, "none", "http")}},
	} {
		s, err := parse(append(c.flags, "--listen=127.0.0.1:0", "--http=")...)
		require.NoError(t, err)
		if err = s.check(); err == nil {
			_, err = s.open(s.logger(), false)
		}
		require.ErrorContains(t, err, c.says, "%q", c.flags)
	}
}
