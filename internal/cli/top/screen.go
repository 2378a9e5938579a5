package top

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// These sequences control a terminal; see console_codes(4).
const (
	screenOpen  = "\x1b[?1049h\x1b[?25l\x1b[?7l" // alternate screen, no cursor, no wrapping of wide lines
	screenClose = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineEnd     = "\x1b[K\r\n" // clears the rest of the line
	screenEnd   = "\x1b[J"     // clears the rest of the screen
)

// screen is a terminal that is redrawn in place.
type screen struct{ to *os.File }

func openScreen(to *os.File) *screen {
	_, _ = to.WriteString(screenOpen)
	return &screen{to}
}

// close restores the terminal.
func (s *screen) close() { _, _ = s.to.WriteString(screenClose) }

func (s *screen) show(v *view) error {
	width, height, err := term.GetSize(int(s.to.Fd()))
	if err != nil {
		return err
	}
	_, err = s.to.WriteString(frame(v.fit(width, height), width, height))
	return err
}

// frame cuts lines to the size of the screen.
func frame(lines []string, width, height int) string {
	var b strings.Builder
	b.WriteString(screenHome)
	for i, line := range lines[:min(len(lines), max(height, 1))] {
		if i > 0 {
			b.WriteString(lineEnd)
		}
		b.WriteString(cut(line, width))
	}
	return b.String() + "\x1b[K" + screenEnd
}

// cut returns the first width characters of a line.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width, 0)])
}
