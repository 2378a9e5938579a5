package commands

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSyntaxIsParsedOnce checks that COMMAND DOCS, which every application may send, does not parse the syntax of all
// commands for each request.
func TestSyntaxIsParsedOnce(t *testing.T) {
	parsed := 0
	for _, cmd := range newCommandTable(families()...).all {
		if first := cmd.parsed(); len(first) > 0 {
			parsed++
			require.Same(t, &first[0], &cmd.parsed()[0], cmd.Full)
		}
	}
	require.Greater(t, parsed, 50)
}
