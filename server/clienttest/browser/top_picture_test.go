package browser

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/top"
	"github.com/weir-project/weir/internal/weirproc"
)

// The terminal is too small for 31 idle policies.
const (
	pictureColumns = 96
	pictureLines   = 27
)

// TestTopPicture takes a picture of weir top in a real terminal, under load.
func TestTopPicture(t *testing.T) {
	dir := os.Getenv("WEIRTEST_SCREENSHOTS")
	if dir == "" {
		t.Skip("SKIPPED: pictures are taken with WEIRTEST_SCREENSHOTS=DIR")
	}
	t.Parallel() // with TestScreenshots
	p := start(t, "--max-memory=64mb")
	var idle []string
	for i := range 31 {
		idle = append(idle, fmt.Sprintf("tenant-%02d LIMIT FIXED 1m 100", i+1))
	}
	set(t, p, idle...)
	shop(t, p)
	tmux := newTerminal(t, weirproc.Command("top", "--http", p.HTTP).Args...)
	require.Eventually(t, func() bool { return strings.Contains(tmux("capture-pane", "-p"), "last 60 s") },
		top.Window+patience, time.Second, "the view must cover a minute")
	text := strings.TrimRight(tmux("capture-pane", "-p"), "\n")
	require.Contains(t, text, "31 idle: tenant-01")
	require.Contains(t, text, "MOST DENIED")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "top.svg"), terminalSVG(text), 0o644))
}

// newTerminal runs a command in a tmux terminal, which ends with the test. It returns a function that sends commands
// to tmux.
func newTerminal(t *testing.T, command ...string) func(args ...string) string {
	t.Helper()
	path, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("SKIPPED: tmux is missing (on Debian: apt install tmux)")
	}
	socket := filepath.Join(t.TempDir(), "tmux")
	tmux := func(args ...string) string {
		out, err := exec.Command(path, append([]string{"-S", socket, "-f", os.DevNull}, args...)...).CombinedOutput()
		require.NoError(t, err, "tmux %v: %s", args, out)
		return string(out)
	}
	tmux(append([]string{"new-session", "-d", "-x", fmt.Sprint(pictureColumns), "-y", fmt.Sprint(pictureLines), "--"},
		command...)...)
	tmux("set-option", "-g", "status", "off")
	t.Cleanup(func() { tmux("kill-server") })
	return tmux
}

// terminalSVG draws the lines of a terminal.
func terminalSVG(text string) []byte {
	const across, down, margin = 8, 18, 14 // the size of a character, and the margin
	lines := strings.Split(text, "\n")
	width, height := pictureColumns*across+2*margin, len(lines)*down+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `,
		width, height)
	b.WriteString(`role="img" aria-label="weir top">` + "\n")
	b.WriteString(`<rect width="100%" height="100%" rx="8" fill="#14171c"/>` + "\n")
	b.WriteString(`<g font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13" `)
	b.WriteString(`fill="#e4e8ee" xml:space="preserve">` + "\n")
	for i, line := range lines {
		if line = strings.TrimRight(line, " "); line == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%d" style="white-space:pre">`,
			margin, margin+(i+1)*down-5, len([]rune(line))*across)
		_ = xml.EscapeText(&b, []byte(line)) // writing to memory cannot fail
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}
