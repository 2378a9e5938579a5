package clienttest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNodeExamples runs the examples of three libraries' READMEs as web servers.
func TestNodeExamples(t *testing.T) {
	if os.Getenv("WEIR_TEST_CLIENTS") == "" {
		t.Skip("SKIPPED: the examples of limiter libraries run with WEIR_TEST_CLIENTS=1 (make test-clients)")
	}
	dir := limiterLanguages[0].prepare(t)
	w := startWeir(t)
	cmd := exec.CommandContext(t.Context(), "node", "examples.mjs", w.port())
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, strings.Join([]string{
		"express: 200 1, 200 0, 429 0, 429 0",
		"fastify: 200 1 , 200 0 , 429 0 60, 429 0 60",
		"flexible: 200 , 200 , 429 60, 429 60",
	}, "\n"), strings.TrimSpace(string(out)))
}

// TestGoLibrariesOwnTests runs the tests that two libraries publish with themselves,
// their examples included, with weir in place of Redis. Nothing in them is changed but
// the address, where it is fixed.
func TestGoLibrariesOwnTests(t *testing.T) {
	if os.Getenv("WEIR_TEST_CLIENTS") == "" {
		t.Skip("SKIPPED: the tests of limiter libraries run with WEIR_TEST_CLIENTS=1 (make test-clients)")
	}
	for _, library := range []struct{ module, tests string }{
		{"github.com/go-redis/redis_rate/v10@v10.0.1", "."},
		{"github.com/ulule/limiter/v3@v3.11.2", "./drivers/store/redis"},
	} {
		t.Run(library.module, func(t *testing.T) {
			w := startWeir(t, "--test-clock=false")
			dir := downloadModule(t, library.module)
			fixed, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
			require.NoError(t, err)
			for _, file := range fixed {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				moved := strings.NewReplacer(`":6379"`, `"`+w.addr+`"`, `"localhost:6379"`, `"`+w.addr+`"`).Replace(string(text))
				require.NoError(t, os.WriteFile(file, []byte(moved), 0o600))
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "-count=1", "-v", library.tests)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "REDIS_URI=redis://"+w.addr+"/0", "GOFLAGS=")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "--- PASS", "no test ran")
			t.Logf("%d tests passed", strings.Count(string(out), "--- PASS"))
		})
	}
}

// downloadModule returns a copy of a module that may be written to.
func downloadModule(t *testing.T, module string) (dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: %s cannot be downloaded: %v\n%s", module, err, out)
	}
	require.NoError(t, err, "%s", out)
	var got struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &got))
	dir = filepath.Join(t.TempDir(), "module")
	require.NoError(t, copyFiles(got.Dir, dir))
	return dir
}
