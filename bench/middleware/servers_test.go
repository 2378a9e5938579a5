package middleware

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// startup bounds the start of a server. A slow start fails no test.
const startup = 30 * time.Second

// weir starts a server that is built from this tree and stores nothing on disk.
func weir(t *testing.T) *process {
	binary := filepath.Join(t.TempDir(), "weir")
	build := exec.Command("go", "build", "-o", binary, "./cmd/weir")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	addr := freeport.Addr(t)
	return serve(t, addr, binary, "serve", "--listen", addr, "--http=", "--data-dir=")
}

// redisServer starts a Redis that stores nothing on disk, or skips the test.
func redisServer(t *testing.T) *process {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server")
	}
	addr := freeport.Addr(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return serve(t, addr, binary, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
}

// process is a server and a client of it.
type process struct {
	*redis.Client
	pid int
}

// serve runs a server until the test ends, and returns after its first answer.
func serve(t *testing.T, addr, binary string, args ...string) *process {
	cmd := exec.Command(binary, args...)
	cmd.Dir = t.TempDir()
	require.NoError(t, cmd.Start())
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, PoolSize: atOnce})
	t.Cleanup(func() {
		_ = rdb.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool { return rdb.Ping(t.Context()).Err() == nil }, startup, 10*time.Millisecond)
	return &process{rdb, cmd.Process.Pid}
}
