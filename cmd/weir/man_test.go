package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/manpage"
)

// manFoot ends the man page of weir.
const manFoot = `.SH FILES
.TP
.I /etc/weir/weir.yaml
The configuration of the service that the packages of Linux install. Keys are flags of
.BR weir\-serve (1).
.SH SEE ALSO
.B weir help
explains the commands that clients send.
`

// writeManPages writes the man pages of weir into the directory of -man, or else into a temporary one.
func writeManPages(t *testing.T) (dir string) {
	if dir = *manDir; dir == "" {
		dir = t.TempDir()
	}
	require.NoError(t, manpage.Write(newParser(new(cli)).Model.Node, dir, manFoot))
	return dir
}

// TestManPagesAreComplete checks that each command has a page that names each of its flags. With -man it writes the
// pages of a release.
func TestManPagesAreComplete(t *testing.T) {
	dir := writeManPages(t)
	app := newParser(new(cli)).Model.Node
	for _, node := range visible(app) {
		page, err := os.ReadFile(filepath.Join(dir, "weir-"+node.Name+".1"))
		require.NoError(t, err)
		for _, child := range append(visible(node), node) {
			for _, flag := range child.Flags {
				name := strings.ReplaceAll("--"+flag.Name, "-", `\-`) + `\fR`
				require.Equal(t, !flag.Hidden, strings.Contains(string(page), name), "%s --%s", node.Name, flag.Name)
			}
		}
	}
	pages, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, pages, len(visible(app))+1)
}

func visible(at *kong.Node) (nodes []*kong.Node) {
	for _, child := range at.Children {
		if !child.Hidden {
			nodes = append(nodes, child)
		}
	}
	return nodes
}

// TestManPagesRender checks that formatters of man pages report no problem.
func TestManPagesRender(t *testing.T) {
	dir := writeManPages(t)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for tool, command := range map[string][]string{
		"groff":  {"groff", "-man", "-ww", "-Tutf8", "-z"},
		"mandoc": {"mandoc", "-Tlint", "-Wwarning"},
	} {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("SKIPPED: %s is missing (on Debian: apt install %s)", tool, tool)
			}
			for _, page := range pages {
				said, _ := exec.Command(command[0], append(command[1:], page)...).CombinedOutput()
				for line := range strings.Lines(string(said)) {
					// A program that was built outside a clone has no date.
					require.Contains(t, line, `missing date, using "": TH`)
				}
			}
		})
	}
}
