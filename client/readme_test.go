package client_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPagesShowTheWholeOptions checks that every program on the pages that gives its Redis client to this package sets
// the options without which deadlines end silently, and errors do not name their cause.
func TestPagesShowTheWholeOptions(t *testing.T) {
	block := regexp.MustCompile("(?s)\n```go\n(.*?)\n```")
	for _, page := range []string{"README.md", "../docs/http.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		made := 0
		for _, program := range block.FindAllStringSubmatch(string(text), -1) {
			if regexp.MustCompile(`redis\.New\w*\(`).MatchString(program[1]) {
				made++
				require.Regexp(t, `ContextTimeoutEnabled: +true`, program[1], page)
				require.Regexp(t, `DialerRetries: +1`, program[1], page)
			}
		}
		require.NotZero(t, made, page)
	}
}
