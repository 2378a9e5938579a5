package helm

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// binary is weir, built from this tree, or the one that WEIRTEST_BINARY names, which is.
var binary string

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm logs the links in files/
	os.Exit(build(m))
}

func build(m *testing.M) int {
	if binary = os.Getenv("WEIRTEST_BINARY"); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "weir")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/weir")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build ./cmd/weir: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// weir runs the program, and requires success.
func weir(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
