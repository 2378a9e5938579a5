package scripts

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScriptsPage checks that docs/scripts.md lists exactly the recognised scripts and their native commands.
func TestScriptsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/scripts.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\n\n"+recognisedTable()+"\n")
	require.Contains(t, string(page), "\n\n"+nativesTable()+"\n")
}

// recognisedTable returns the recognised scripts. Only the first of a library has its name.
func recognisedTable() string {
	var b strings.Builder
	b.WriteString("| library | script | releases | SHA-1 |\n|---|---|---|---|\n")
	named := ""
	for _, d := range Dialects() {
		library := " " + d.Library + " (" + d.Registry + ")"
		if library == named {
			library = ""
		} else {
			named = library
		}
		fmt.Fprintf(&b, "|%s | %s | %s | `%s` |\n", library, d.Script, strings.ReplaceAll(d.Releases, " to ", "–"),
			d.SHA1)
	}
	return b.String()
}

// nativesTable returns the equivalent native commands.
func nativesTable() string {
	var b strings.Builder
	b.WriteString("| library | native command |\n|---|---|\n")
	for _, d := range dialects() {
		fmt.Fprintf(&b, "| %s | `%s` |\n", d.name, strings.ReplaceAll(d.native, "; ", "`, `"))
	}
	return b.String()
}
