package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// write writes the figures as a table.
func write(to io.Writer, all []figures, s sizes) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| limit %d in %s | most in any window | most in a tenth of one | admitted a window after a "+
		"burst | bytes a key | the same, limit %d | a decision |\n",
		s.limit, short(s.window), s.long)
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %s, `%s` | %d | %d | %d | %d | %d | %.1f µs |\n",
			f.name, f.command, f.most, f.burst, f.again, f.bytes, f.longBytes,
			float64(f.each)/float64(time.Microsecond))
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// short formats a duration without its units that are zero.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
