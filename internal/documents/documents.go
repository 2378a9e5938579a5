// Package documents extracts the requests for tests from the documents of the five systems of
// examples/systems/requirements.md. The documents belong to other projects, so this repository does not contain them.
// WEIRTEST_DOCUMENTS names a directory with them, and a test skips without it.
package documents

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// fenced matches a script in a fenced block, or in a template literal that begins with a new line.
var fenced = regexp.MustCompile("(?s)\n *```lua\n(.*?)```|`(\n.*?)`;")

// Script finds the text of a script by its SHA-1.
func Script(t *testing.T, sum string) string {
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
			for _, body := range found[1:] {
				if has := sha1.Sum(body); hex.EncodeToString(has[:]) == sum {
					return string(body)
				}
			}
		}
	}
	t.Fatalf("no document of %s has a script with SHA-1 %s", dir, sum)
	return ""
}
