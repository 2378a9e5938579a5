package engine_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/weir-project/weir"

// mayImport is the one way imports run: what each package may use of the
// module, itself aside.
var mayImport = map[string][]string{
	"engine":      {},
	"latency":     {},
	"httpfields":  {},
	"persistence": {"engine", "latency"},
	"raftstore":   {"engine", "internal", "latency", "persistence"}, // internal/connlimit: connections of a port
	"server":      {"engine", "httpfields", "internal", "latency"},  // also internal/nearest, and rlspb: messages of Envoy's
	"policyfile":  {"engine", "httpfields", "internal", "latency", "server"},
	"client":      {"engine", "httpfields", "latency"}, // latency: the durations that its metrics show
	"bench":       {},
}

func goList(t *testing.T, args ...string) []string {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// roomOf is the top-level directory a package of the module lies in, or none.
func roomOf(path string) string {
	rest, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return ""
	}
	room, _, _ := strings.Cut(rest, "/")
	return room
}

// TestImportsRunOneWay fails when a package uses another that it must not know.
func TestImportsRunOneWay(t *testing.T) {
	for _, path := range goList(t, "-e", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./...") {
		allowed, ruled := mayImport[roomOf(path)]
		if !ruled {
			continue // cmd puts all of them together
		}
		for _, dep := range goList(t, "-e", "-deps", path) {
			if room := roomOf(dep); room != "" && room != roomOf(path) {
				require.Contains(t, allowed, room, "%s depends on %s", path, dep)
			}
		}
	}
}

// TestEngineIsPure fails when the engine imports anything but the standard
// library, or a clock, a socket, a file, a logger or a source of chance.
func TestEngineIsPure(t *testing.T) {
	imports := goList(t, "-f", `{{join .Imports "\n"}}`, "./engine")
	require.NotEmpty(t, imports)
	for _, path := range imports {
		first, _, _ := strings.Cut(path, "/")
		require.NotContains(t, first, ".", "%s is not of the standard library", path)
		for _, banned := range []string{"time", "net", "os", "log", "math/rand", "syscall", "io/fs", "runtime", "unsafe"} {
			require.False(t, path == banned || strings.HasPrefix(path, banned+"/"), "engine imports %s", path)
		}
	}
}
