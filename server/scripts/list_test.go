package scripts

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScriptsPage checks that docs/scripts.md lists exactly the recognised scripts and their native commands.
func TestScriptsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/scripts.md")
	require.NoError(t, err)
	var recognised, natives strings.Builder
	require.NoError(t, WriteDialects(&recognised, true))
	require.NoError(t, writeNatives(&natives))
	require.Contains(t, string(page), "\n\n"+recognised.String()+"\n",
		"replace the table by what `weir dialects --markdown` prints")
	require.Contains(t, string(page), "\n\n"+natives.String()+"\n")
}

// writeNatives writes the equivalent native commands.
func writeNatives(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| library | native command |\n|---|---|\n")
	for _, d := range dialects() {
		fmt.Fprintf(&b, "| %s | `%s` |\n", d.name, strings.ReplaceAll(d.native, "; ", "`, `"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
