package chaos

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// modulePath is the package of the server's program. It is absolute, so that the harness can build from any directory.
const modulePath = "github.com/weir-project/weir/cmd/weir"

// Build compiles the server, with the known mistakes that tests switch on, into dir and returns
// the program's path.
func Build(dir string) (string, error) {
	binary := filepath.Join(dir, "weir")
	if out, err := exec.Command("go", "build", "-tags", "weirfaults", "-o", binary,
		modulePath).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}
