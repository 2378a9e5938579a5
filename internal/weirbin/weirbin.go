// Package weirbin gives tests the program weir.
package weirbin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build returns the path of a weir of this source, in a file of that name. The variable WEIRTEST_BINARY names one that
// is built already: scripts/test.sh builds one for the tests of all packages. Without it, Build compiles one into dir.
func Build(dir string) (string, error) {
	if built := os.Getenv("WEIRTEST_BINARY"); built != "" {
		return built, nil
	}
	const module = "github.com/weir-project/weir"
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", module, err)
	}
	program := filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-o", program, "./cmd/weir")
	build.Dir = strings.TrimSpace(string(root))       // the tests may be of another module
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in make build, so that both share the compiled packages
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/weir: %w\n%s", err, out)
	}
	return program, nil
}
