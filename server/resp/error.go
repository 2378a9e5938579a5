package resp

import "strconv"

// Error is an error reply as the client reads it: a word in capitals, by
// which programs tell errors apart, and a text for people.
type Error string

func (e Error) Error() string { return string(e) }

// MaxQuotedBytes is how much of a client's argument an error repeats: enough to
// recognize it, too little to flood a log.
const MaxQuotedBytes = 64

// Quote repeats an argument in a reply: cut, and without control characters.
func Quote(b []byte) string {
	cut := b[:min(len(b), MaxQuotedBytes)]
	text := strconv.AppendQuoteToASCII(nil, string(cut))
	text[0], text[len(text)-1] = '\'', '\''
	if len(cut) < len(b) {
		text = append(text, "..."...)
	}
	return string(text)
}

// Printable returns at most n bytes of b with control characters as spaces.
func Printable(b []byte, n int) string {
	out := append([]byte(nil), b[:min(len(b), n)]...)
	for i, c := range out {
		if c < ' ' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}
