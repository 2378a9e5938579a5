// Package terminal writes text from servers and clients without control sequences that a terminal would execute.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// PlainText returns text of clients without characters that a terminal would execute.
func PlainText(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// WriteJSON writes the output of every command with --json.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = w.Write(append(SilentJSON(text), '\n'))
	}
	return err
}

// controls are the control characters that JSON allows in a string, and some terminals execute.
var controls = regexp.MustCompile("[\u007f-\u009f]")

// SilentJSON returns the same JSON without characters that a terminal would execute.
func SilentJSON(text []byte) []byte {
	return controls.ReplaceAllFunc(
		text, func(b []byte) []byte { return fmt.Appendf(nil, `\u%04x`, []rune(string(b))[0]) })
}
