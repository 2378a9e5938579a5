package bench

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// barCells is the width of the progress bar.
const barCells = 20

// eraseLine returns to the start of a terminal's line and clears it.
const eraseLine = "\r\033[K"

// Progress returns a Runner.Progress that keeps one line of a terminal up to date,
// and a function that removes the line. For a file or a pipe both do nothing.
func Progress(out *os.File) (tell func(Step), clear func()) {
	info, err := out.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil, func() {}
	}
	return func(s Step) { writeStep(out, s) }, func() { _, _ = io.WriteString(out, eraseLine) }
}

func writeStep(w io.Writer, s Step) {
	full := barCells * s.Done / max(s.Total, 1)
	bar := strings.Repeat("#", full) + strings.Repeat(".", barCells-full)
	fmt.Fprintf(w, "%s[%s] %d/%d %s: %s", eraseLine, bar, s.Done, s.Total, s.Scenario, s.Doing)
}
