package resp

// Results of header in place of used, for a malformed header.
const (
	badNumber  = -1 // not a number and its CRLF
	longNumber = -2 // longer than maxHeaderBytes
)

// header reads a decimal and its CRLF from the start of b. used is the number of bytes that it read, 0 while the header
// is incomplete, or badNumber or longNumber. As in Redis, the decimal has an optional minus, no plus, no leading zero
// and no space. n saturates far above every limit instead of overflowing.
func header(b []byte) (n, used int) {
	if len(b) > 2 && b[0]-'0' <= 9 && b[1] == '\r' && b[2] == '\n' {
		return int(b[0] - '0'), 3 // nearly every count
	}
	i := 0
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		i = 1
	}
	first := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if i == maxHeaderBytes {
			return 0, longNumber
		}
		if n < 1<<40 {
			n = n*10 + int(b[i]-'0')
		}
	}
	switch {
	case i == len(b):
		return 0, 0
	case b[i] != '\r' || i == first || i-first > 19:
		return 0, badNumber
	case b[first] == '0' && (negative || i-first > 1):
		return 0, badNumber
	case i+1 == len(b):
		return 0, 0
	case b[i+1] != '\n':
		return 0, badNumber
	case negative:
		n = -n
	}
	return n, i + 2
}

// visible returns c if it is printable, and otherwise a question mark, because a reply must stay one line of text.
func visible(c byte) byte {
	if c < ' ' || c > '~' {
		return '?'
	}
	return c
}
