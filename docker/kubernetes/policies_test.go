package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds the wait for a server that is started on a busy machine.
const patience = time.Minute

// The policies of the ConfigMap are those of a server that is started with them, in a
// directory such as Kubernetes mounts: links to a directory that is exchanged as a whole.
func TestThePoliciesAreLoaded(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "weir")
	build := exec.Command("go", "build", "-o", binary, "./cmd/weir")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	mount := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(mount, "..2026"), 0o755))
	require.NoError(t, os.Symlink("..2026", filepath.Join(mount, "..data")))
	for name, text := range read(t).policies.Data {
		require.NoError(t, os.WriteFile(filepath.Join(mount, "..2026", name), []byte(text), 0o644))
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(mount, name)))
	}
	file := filepath.Join(mount, "policies.yaml")

	addr := serve(t, binary, "WEIR_POLICIES="+file)
	out, err = exec.Command(binary, "policy", "diff", "--addr", addr, "--file", file).CombinedOutput()
	require.NoError(t, err, "%s", out) // 1 where they differ
	out, err = exec.Command(binary, "policy", "export", "--addr", addr).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "TOKENBUCKET 100/s 200")
}

var listens = regexp.MustCompile(`msg=ready .*listen=(\S+)`)

// serve starts a server that ends with the test, and returns where it listens.
func serve(t *testing.T, binary, env string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	server := exec.Command(binary, "serve", "--listen=127.0.0.1:0", "--http=", "--data-dir=")
	server.Env, server.Stderr = append(os.Environ(), env), log
	require.NoError(t, server.Start())
	t.Cleanup(func() { _, _ = server.Process.Signal(syscall.SIGTERM), server.Wait() })
	var said []byte
	require.Eventually(t, func() bool {
		said, err = os.ReadFile(log.Name())
		return err == nil && listens.Match(said)
	}, patience, 20*time.Millisecond, "%s", &said)
	return string(bytes.TrimSpace(listens.FindSubmatch(said)[1]))
}
