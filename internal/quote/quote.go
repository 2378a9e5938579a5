// Package quote makes bytes of a client fit for replies, errors and logs.
package quote

import "strconv"

// MaxBytes is the number of bytes of an argument that an error repeats. It suffices to recognise the argument, and does
// not flood a log.
const MaxBytes = 64

// Text quotes an argument for a reply, truncated and without control characters.
func Text(b []byte) string {
	cut := b[:min(len(b), MaxBytes)]
	text := strconv.AppendQuoteToASCII(nil, string(cut))
	text[0], text[len(text)-1] = '\'', '\''
	if len(cut) < len(b) {
		text = append(text, "..."...)
	}
	return string(text)
}

// Printable returns at most n bytes of b, with control characters replaced by spaces.
func Printable(b []byte, n int) string {
	out := append([]byte(nil), b[:min(len(b), n)]...)
	for i, c := range out {
		if c < ' ' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}
