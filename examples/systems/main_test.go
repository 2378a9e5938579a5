package systems

import (
	"os"
	"os/exec"
	"testing"

	"github.com/weir-project/weir/internal/documents"
	"github.com/weir-project/weir/internal/weirproc"
)

func TestMain(m *testing.M) { os.Exit(weirproc.Main(m)) }

// need skips a test that downloads packages of another language, unless WEIRTEST_EXAMPLES is set. It also skips a
// test whose tools are missing, and prints how to install them.
func need(t *testing.T, how string, tools ...string) {
	t.Helper()
	if os.Getenv("WEIRTEST_EXAMPLES") == "" {
		t.Skip("SKIPPED: systems in other languages run with WEIRTEST_EXAMPLES=1 (make test-examples)")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is missing (%s)", tool, how)
		}
	}
}

// script returns the text of a script in the documents by its SHA-1. Without the documents it skips the test.
func script(t *testing.T, sum string) string { return documents.Script(t, sum) }
