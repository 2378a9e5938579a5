package systems

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

func TestMain(m *testing.M) { os.Exit(weirproc.Main(m)) }

// need skips a test that fetches packages of another language unless WEIRTEST_EXAMPLES is
// set, and one whose tools are missing. how says how to get them.
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

var fenced = regexp.MustCompile("(?s)\n *```lua\n(.*?)```|`\n(.*?)`;")

// script finds the text of a script in the documents, by its SHA-1. The documents belong to
// others, so they are not in this repository: WEIRTEST_DOCUMENTS names a directory that has
// them, and a test that needs one skips without it.
func script(t *testing.T, sum string) string {
	t.Helper()
	dir := os.Getenv("WEIRTEST_DOCUMENTS")
	if dir == "" {
		t.Skip("SKIPPED: the systems' documents are not here (WEIRTEST_DOCUMENTS names their directory)")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range fenced.FindAllSubmatch(text, -1) {
			for _, body := range [][]byte{found[1], append([]byte("\n"), found[2]...)} {
				if has := sha1.Sum(body); hex.EncodeToString(has[:]) == sum {
					return string(body)
				}
			}
		}
	}
	t.Fatalf("no document of %s has a script with SHA-1 %s", dir, sum)
	return ""
}
