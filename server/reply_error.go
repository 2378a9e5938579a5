package server

import "strconv"

// replyError is an error reply as the client reads it: a word in capitals, by
// which programs tell errors apart, and a text for people.
type replyError string

func (e replyError) Error() string { return string(e) }

// maxQuotedBytes is how much of a client's argument an error repeats: enough to
// recognize it, too little to flood a log.
const maxQuotedBytes = 64

// quote repeats an argument in a reply: cut, and without control characters.
func quote(b []byte) string {
	cut := b[:min(len(b), maxQuotedBytes)]
	text := strconv.AppendQuoteToASCII(nil, string(cut))
	text[0], text[len(text)-1] = '\'', '\''
	if len(cut) < len(b) {
		text = append(text, "..."...)
	}
	return string(text)
}

// printable returns at most n bytes of b with control characters as spaces.
func printable(b []byte, n int) string {
	out := append([]byte(nil), b[:min(len(b), n)]...)
	for i, c := range out {
		if c < ' ' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}
