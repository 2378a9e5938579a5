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

// recognisedTable returns the recognised scripts, those of one name in one row.
func recognisedTable() string {
	var b strings.Builder
	b.WriteString("| library | script | releases, and the SHA-1 of their text |\n|---|---|---|\n")
	all := Dialects()
	for i, d := range all {
		d.Releases = strings.ReplaceAll(d.Releases, " to ", "–")
		if i > 0 && d.Library == all[i-1].Library && d.Script == all[i-1].Script {
			fmt.Fprintf(&b, "; %s `%s`", d.Releases, d.SHA1)
		} else {
			fmt.Fprintf(&b, "| %s (%s) | %s | %s `%s`", d.Library, d.Registry, d.Script, d.Releases, d.SHA1)
		}
		if i+1 == len(all) || d.Library != all[i+1].Library || d.Script != all[i+1].Script {
			b.WriteString(" |\n")
		}
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
