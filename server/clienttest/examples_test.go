package clienttest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNodeExamples runs the examples of three libraries' READMEs as web servers.
func TestNodeExamples(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: the examples of limiter libraries run with WEIRTEST_CLIENTS=1 (make test-clients)")
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

// TestGoLibrariesOwnTests runs the published tests and examples of two libraries, first against Redis and then against
// weir. Only fixed addresses in them are changed. The outcomes must be equal. Some tests fail on both servers: since
// July 2025 the times in redis_rate's scripts are too large for the precision that most of its tests need.
func TestGoLibrariesOwnTests(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: the tests of limiter libraries run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	for _, library := range []struct {
		module, tests string
		passing       int // at least
	}{
		{"github.com/go-redis/redis_rate/v10@v10.0.1", ".", 1},
		{"github.com/ulule/limiter/v3@v3.11.2", "./drivers/store/redis", 3},
	} {
		t.Run(library.module, func(t *testing.T) {
			socket := startRedis(t)
			want := ownTests(t, library.module, library.tests, socket, "unix://"+socket)
			addr := startWeir(t, "--test-clock=false").addr
			require.Equal(t, want, ownTests(t, library.module, library.tests, addr, "redis://"+addr+"/0"))
			require.GreaterOrEqual(t, strings.Count(want, "--- PASS"), library.passing, want)
		})
	}
}

// outcome matches the line of go test -v about one test, without the duration.
var outcome = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): \S+`)

// ownTests runs the tests of a module against a server and returns their outcomes.
func ownTests(t *testing.T, module, tests, addr, uri string) string {
	t.Helper()
	dir := downloadModule(t, module)
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	moved := strings.NewReplacer(`":6379"`, `"`+addr+`"`, `"localhost:6379"`, `"`+addr+`"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte(moved.Replace(string(text))), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "-count=1", "-v", tests)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDIS_URI="+uri, "GOFLAGS=")
	out, _ := cmd.CombinedOutput() // the outcomes show the failures
	outcomes := outcome.FindAllString(string(out), -1)
	require.NotEmpty(t, outcomes, "%s", out)
	slices.Sort(outcomes)
	return strings.Join(outcomes, "\n")
}

// downloadModule downloads a module, and returns the directory of a copy that the test may change.
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
