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

// PlainText is what clients wrote without anything that a terminal would obey.
func PlainText(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// WriteJSON is how every command with --json writes.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = w.Write(append(SilentJSON(text), '\n'))
	}
	return err
}

// controls are those that JSON lets stand in a string, and some terminals obey.
var controls = regexp.MustCompile("[\u007f-\u009f]")

// SilentJSON is the same JSON without anything that a terminal would obey.
func SilentJSON(text []byte) []byte {
	return controls.ReplaceAllFunc(text, func(b []byte) []byte { return fmt.Appendf(nil, `\u%04x`, []rune(string(b))[0]) })
}
