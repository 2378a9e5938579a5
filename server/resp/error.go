package resp

import "strconv"

// Error is an error reply as the client reads it: a word in capitals, by which programs distinguish errors, and a text
// for people.
type Error string

func (e Error) Error() string { return string(e) }

// MaxQuotedBytes is the number of bytes of an argument that an error repeats. It suffices to recognise the argument,
// and does not flood a log.
const MaxQuotedBytes = 64

// Quote quotes an argument for a reply, truncated and without control characters.
func Quote(b []byte) string {
	cut := b[:min(len(b), MaxQuotedBytes)]
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
